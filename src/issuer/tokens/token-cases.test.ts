import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerReview } from '../../api/index.ts'
import { type BearerTokens, bearerTokens } from '../../authn/index.ts'
import { ApiError, isRecord } from '../../core/index.ts'
import { type Attempt, notOurs } from './attempts.suite.ts'
import { legacyServiceAccountTokens } from './legacy-tokens.ts'
import { serviceAccountTokens } from './token-authenticator.ts'
import { tokenCases } from './token-cases.suite.ts'
import { TokenLab } from './token-lab.suite.ts'

const { signal } = new AbortController()

let visits = 0
const attacker = createServer((_request, response) => {
  visits += 1
  response.end('{}')
})
let attackerUrl = ''
beforeAll(async () => {
  await once(attacker.listen(0, '127.0.0.1'), 'listening')
  attackerUrl = `http://127.0.0.1:${(attacker.address() as AddressInfo).port}`
})
afterAll(() => {
  attacker.close()
})

test('every case is in the table once', () => {
  const numbers = tokenCases.map(({ title }) => Number(/^\[ISS-T(\d+)\]/.exec(title)?.[1]))
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 75 }, (_none, i) => i + 1))
})

/** In words: who was let in, or why nobody. The words of a refusal are cut down to those that are expected, if they are there. */
function inWords({ name, refused = '' }: Attempt, user: unknown, reason = ''): string {
  const { username = '', uid = '' } = isRecord(user) ? user : {}
  if (username !== '') return `${name}: ${String(username)} ${String(uid)}`
  const isExpected = refused !== notOurs && refused !== '' && reason.includes(refused)
  return `${name}: ${isExpected ? refused : reason}`
}

const expected = ({ name, refused }: Attempt): string =>
  `${name}: ${refused ?? 'system:serviceaccount:shop:bot sa-1'}`

type Judge = (tokens: BearerTokens, attempt: Attempt) => Promise<string>

/** Shows all tokens of a case one after the other. */
async function shown(attempts: (lab: TokenLab) => readonly Attempt[], judge: Judge) {
  const lab = new TokenLab(attackerUrl)
  const tokens = bearerTokens([legacyServiceAccountTokens(lab), serviceAccountTokens(lab)])
  const tried = attempts(lab)
  const outcomes: string[] = []
  for (const attempt of tried) {
    await attempt.before?.(lab)
    outcomes.push(await judge(tokens, attempt))
  }
  return { outcomes, expected: tried.map(expected), visits }
}

describe('the authenticator', () => {
  const authenticate: Judge = async (tokens, attempt) => {
    try {
      const found = await tokens.authenticateToken(attempt.token, signal, attempt.audiences)
      return inWords(attempt, found?.user, notOurs)
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'Unauthorized') throw error
      return inWords(attempt, undefined, error.detail)
    }
  }

  test.each(tokenCases)('$title', async ({ attempts }) => {
    const found = await shown(attempts, authenticate)
    expect(found).toMatchObject({ outcomes: found.expected, visits: 0 })
  })
})

describe('TokenReview', () => {
  const sources = (tokens: BearerTokens) => ({
    authorizer: {
      authorize: () => ({ allowed: true, reason: '' }),
      rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
    },
    authenticateToken: async (asked: string, wanted: readonly string[]) =>
      tokens.authenticateToken(asked, signal, wanted),
    clock: { now: () => 0, monotonic: () => 0 },
  })

  const review: Judge = async (tokens, attempt) => {
    const { token, audiences } = attempt
    const asked = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      metadata: { name: '' },
      spec: { token, ...(audiences && { audiences }) },
    } as const
    const asker = { username: 'reviewer', groups: [] }
    const { status } = await answerReview(asked, asker, sources(tokens), signal)
    const { authenticated, user, error } = isRecord(status) ? status : {}
    const reason = String(error).replace(/^\[invalid bearer token, (.*)\]$/, '$1')
    return inWords(attempt, authenticated === true ? user : undefined, reason)
  }

  test.each(tokenCases.filter(({ title }) => !title.startsWith('[ISS-T75]')))(
    '$title',
    async ({ attempts }) => {
      const found = await shown(attempts, review)
      expect(found).toMatchObject({ outcomes: found.expected, visits: 0 })
    },
  )

  test('[ISS-T75] an empty token is 400', async () => {
    const empty = tokenCases.find(({ title }) => title.startsWith('[ISS-T75]'))
    await expect(shown(empty!.attempts, review)).rejects.toMatchObject({
      reason: 'BadRequest',
      message: 'token is required for TokenReview in authentication',
    })
  })
})
