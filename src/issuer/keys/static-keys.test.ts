import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { renderIssuerDocuments } from '../documents/documents.ts'
import { pemForms } from './pem-forms.suite.ts'
import { openStaticKeys } from './static-keys.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'issuer-keys-'))
})
afterEach(() => rm(folder, { recursive: true }))

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, content)
  return path
}

const privateForms = pemForms.filter(({ isPrivate }) => isPrivate)
const facts = { issuer: 'https://issuer.example', jwksUri: 'https://issuer.example/openid/v1/jwks' }

describe('any form of key file is read, and nothing private leaves it [ISS-R26, ISS-R32]', () => {
  const [signer] = privateForms

  test.each(pemForms)('$name', async ({ pem, kid, alg, secrets }) => {
    const keys = await openStaticKeys({
      signingKeyFile: await file('signer.pem', signer!.pem),
      keyFiles: [await file('key.pem', pem)],
    })
    const { discovery, jwks } = renderIssuerDocuments(facts, keys.current.published)
    const text = `${discovery.body.toString()}${jwks.body.toString()}`
    expect(text).toContain(`"kid":"${kid}"`)
    expect(text).toContain(`"alg":"${alg}"`)
    const leaked = [...secrets, ...signer!.secrets].filter((secret) => text.includes(secret))
    expect(leaked).toEqual([])
  })

  test.each(privateForms)('$name signs', async ({ pem, kid }) => {
    const signingKeyFile = await file('signer.pem', pem)
    const { current } = await openStaticKeys({ signingKeyFile, keyFiles: [] })
    expect([current.signer.kid, current.published.has(kid)]).toEqual([kid, true])
  })

  test.each(privateForms)('a broken $name is refused without a word of it', async (form) => {
    const lines = form.pem.split('\n')
    const cut = lines.filter((_line, index) => index !== lines.length - 4).join('\n')
    const signingKeyFile = await file('signer.pem', cut)
    const error: unknown = await openStaticKeys({ signingKeyFile, keyFiles: [] }).catch(
      (cause: unknown) => cause,
    )
    expect(error).toMatchObject({ code: 'ISSUER_KEY_REFUSED' })
    const shown = JSON.stringify(error, Object.getOwnPropertyNames(error)) + String(error)
    const body = lines.filter((line) => line !== '' && !line.startsWith('-'))
    expect(body.filter((line) => shown.includes(line))).toEqual([])
  })
})

test('the key set is the union of all files and the signing key [ISS-R7, ISS-R8]', async () => {
  const [a, b, c] = ['RS256 PKCS#8', 'ES256 SPKI', 'ES384 certificate'].map(
    (name) => pemForms.find((form) => form.name === name)!,
  )
  const keys = await openStaticKeys({
    signingKeyFile: await file('signer.pem', a!.pem),
    keyFiles: [
      await file('several.pem', `${b!.pem}${c!.pem}${a!.pem}`),
      await file('b.pem', b!.pem),
    ],
  })
  const { published, signer } = keys.current
  expect(published.keys.map(({ kid }) => kid)).toEqual([b!.kid, c!.kid, a!.kid])
  expect(signer.kid).toBe(a!.kid)
})

test.each([
  ['that is not there', undefined, 'ISSUER_KEY_UNREADABLE'],
  ['without a key', 'hello', 'ISSUER_KEY_REFUSED'],
  [
    'with a public key only',
    pemForms.find(({ isPrivate }) => !isPrivate)!.pem,
    'ISSUER_KEY_REFUSED',
  ],
])('a signing key file %s is refused [ISS-R7]', async (_name, content, code) => {
  const path = content === undefined ? join(folder, 'none') : await file('signer.pem', content)
  const opening = openStaticKeys({ signingKeyFile: path, keyFiles: [] })
  await expect(opening).rejects.toMatchObject({ code, message: expect.stringContaining(path) })
})
