import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderIssuerDocuments } from '../documents/documents.ts'
import type { Attempt } from '../tokens/attempts.suite.ts'
import { tokenCases } from '../tokens/token-cases.suite.ts'
import { labKeyState, TokenLab } from '../tokens/token-lab.suite.ts'
import { IssuerUnavailable, TokenRejected } from './errors.ts'
import {
  createServiceAccountVerifier,
  type TokenVerifier,
  type VerifiedServiceAccount,
} from './token-verifier.ts'

let visits = 0
const attacker = createServer((_request, response) => {
  visits += 1
  response.end('{}')
})
const publisher = createServer((request, response) => {
  const issuer = 'https://issuer.example'
  const facts = { issuer, jwksUri: `${urlOf(publisher)}/keys` }
  const { discovery, jwks } = renderIssuerDocuments(facts, labKeyState.published)
  const { body, contentType } = request.url === '/keys' ? jwks : discovery
  response.writeHead(200, { 'content-type': contentType }).end(body)
})
const urlOf = (server: Server): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`

beforeAll(async () => {
  for (const server of [attacker, publisher]) await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterAll(() => {
  for (const server of [attacker, publisher]) server.close()
})

type Verifier = TokenVerifier<VerifiedServiceAccount>

/** Shows all tokens of a case one after the other. */
async function shown(
  attempts: (lab: TokenLab) => readonly Attempt[],
  judge: (verifier: Verifier, token: string) => Promise<string>,
) {
  const lab = new TokenLab(urlOf(attacker))
  const verifierFor = (audience: readonly string[]): Verifier =>
    createServiceAccountVerifier({
      issuer: 'https://issuer.example',
      audience,
      clock: lab.clock,
      discoveryUrl: `${urlOf(publisher)}/discovery`,
      allowHttpOnLoopback: true,
    })
  const usual = verifierFor(['https://issuer.example'])
  const tried = attempts(lab)
  const outcomes: string[] = []
  for (const { name, token, audiences, before } of tried) {
    await before?.(lab)
    outcomes.push(`${name}: ${await judge(audiences ? verifierFor(audiences) : usual, token)}`)
  }
  const expected = tried.map(
    ({ name, outside, refused }) =>
      `${name}: ${outside ?? (refused === undefined ? 'accepted' : 'refused')}`,
  )
  return { outcomes, expected, visits }
}

describe('the relying party sees the documents and nothing else [ISS-P1]', () => {
  const verify = async (verifier: Verifier, token: string): Promise<string> => {
    try {
      const { subject, namespace, serviceAccount } = await verifier.verify(token)
      expect(subject).toBe(`system:serviceaccount:${namespace}:${serviceAccount.name}`)
      return 'accepted'
    } catch (error) {
      if (!(error instanceof TokenRejected)) throw error
      if (token.length > 40) expect(error.message).not.toContain(token)
      return 'refused'
    }
  }
  test.each(tokenCases)('$title', async ({ attempts }) => {
    const found = await shown(attempts, verify)
    expect(found).toMatchObject({ outcomes: found.expected, visits: 0 })
  })
})

describe('an explanation comes to the same', () => {
  const explain = async (verifier: Verifier, token: string): Promise<string> => {
    const { accepted, checks } = await verifier.explain(token)
    const reason = await verifier.verify(token).then(
      () => undefined,
      (error: unknown) =>
        error instanceof TokenRejected || error instanceof IssuerUnavailable
          ? error.code
          : 'thrown',
    )
    expect(checks.find(({ outcome }) => outcome === 'failed')?.code).toBe(reason)
    return accepted ? 'accepted' : 'refused'
  }
  test.each(tokenCases)('$title', async ({ attempts }) => {
    const found = await shown(attempts, explain)
    expect(found).toMatchObject({ outcomes: found.expected, visits: 0 })
  })
})
