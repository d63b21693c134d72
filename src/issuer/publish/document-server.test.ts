import { afterEach, describe, expect, test } from 'vitest'
import { DocumentServer } from './document-server.ts'
import type { PublicDocuments } from './public-documents.ts'

const document = (text: string) => ({
  body: Buffer.from(text),
  contentType: 'application/json',
  cacheControl: 'public, max-age=3600',
})
const documentsOf = (issuer: string, jwksUri: string): PublicDocuments => ({
  issuer,
  jwksUri,
  discovery: document('discovery'),
  jwks: document('keys'),
})

let listener: DocumentServer | undefined
afterEach(() => listener?.close())

async function answers(documents: PublicDocuments, paths: readonly string[]): Promise<string[]> {
  listener = new DocumentServer(documents, { address: '127.0.0.1', port: 0 })
  const url = await listener.listen()
  return Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`${url}${path}`)
      return answer.status === 200 ? answer.text() : String(answer.status)
    }),
  )
}

const discovery = '/.well-known/openid-configuration'
const jwks = '/openid/v1/jwks'

describe('documents are served where outsiders look for them [ISS-G9]', () => {
  test.each<[string, PublicDocuments, Record<string, string>]>([
    [
      'an issuer without a path',
      documentsOf('https://a.example', `https://a.example${jwks}`),
      { [discovery]: 'discovery', [jwks]: 'keys', '/': '404', '': '404' },
    ],
    [
      'an issuer with a path, by it and for a proxy that takes it away',
      documentsOf('https://a.example/one', `https://a.example/one${jwks}`),
      {
        [`/one${discovery}`]: 'discovery',
        [`/one${jwks}`]: 'keys',
        [discovery]: 'discovery',
        [jwks]: 'keys',
        [`/two${jwks}`]: '404',
        '/one': '404',
      },
    ],
    [
      'a key set elsewhere on the host',
      documentsOf('https://a.example', 'https://a.example/keys.json'),
      { '/keys.json': 'keys', [jwks]: 'keys', [discovery]: 'discovery' },
    ],
    [
      'a key set at the root of another host',
      documentsOf('https://a.example', 'https://keys.example'),
      { [jwks]: 'keys', [discovery]: 'discovery', '/other': '404', '/': '404' },
    ],
  ])('%s', async (_name, documents, expected) => {
    const paths = Object.keys(expected)
    expect(await answers(documents, paths)).toEqual(Object.values(expected))
  })
})
