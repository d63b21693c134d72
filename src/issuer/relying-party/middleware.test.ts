import { once } from 'node:events'
import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Request } from 'express'
import { fastify } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../testing/index.ts'
import {
  expressGuard,
  fastifyGuard,
  type GuardOptions,
  guardListener,
  type VerifiedRequest,
  verifyRequest,
} from './middleware.ts'
import {
  createServiceAccountVerifier,
  type TokenVerifier,
  type VerifiedServiceAccount,
} from './token-verifier.ts'

type Options = GuardOptions<VerifiedServiceAccount>
type Make = (verifier: TokenVerifier<VerifiedServiceAccount>, options: Options) => Promise<Server>

const hello = ({ namespace, serviceAccount }: VerifiedServiceAccount): string =>
  `hello ${namespace}/${serviceAccount.name}`

const listening = async (server: Server): Promise<Server> => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

const frameworks: Record<string, Make> = {
  'node:http': (verifier, options) =>
    listening(
      createServer(
        guardListener(verifier, (_q, response, who) => void response.end(hello(who)), options),
      ),
    ),
  Express: (verifier, options) => {
    const app = express()
    app.use(expressGuard(verifier, options))
    app.get('/', (request, response) => {
      response.send(hello((request as Request & VerifiedRequest).verified))
    })
    return listening(createServer(app))
  },
  Fastify: async (verifier, options) => {
    const app = fastify()
    app.addHook('onRequest', fastifyGuard(verifier, options))
    app.get('/', (request) => hello((request as typeof request & VerifiedRequest).verified))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server
  },
}

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ algorithm: 'ES256' })
})
afterAll(() => issuer.stop())

/** Header names and values as they are sent, so that a test can repeat them. */
async function ask(server: Server, headers: string[]) {
  const { port } = server.address() as AddressInfo
  const request = httpRequest({ port, host: '127.0.0.1', headers: ['host', 'x', ...headers] })
  const [response] = await once(request.end(), 'response')
  let body = ''
  for await (const chunk of response) body += String(chunk)
  return { status: response.statusCode as number, headers: response.headers, body }
}

test('requests that no middleware sees are verified by hand [ISS-P3]', async () => {
  const verifier = createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'shop' })
  const token = issuer.serviceAccountToken({ audience: 'shop', namespace: 'good' })
  const request = { rawHeaders: ['Upgrade', 'websocket', 'Authorization', `Bearer ${token}`] }
  expect(await verifyRequest(request, verifier)).toMatchObject({ namespace: 'good' })
  await expect(verifyRequest({ rawHeaders: [] }, verifier)).rejects.toMatchObject({
    code: 'missing',
  })
})

describe.each(Object.entries(frameworks))('%s [ISS-P3]', (_name, make) => {
  const refusals: string[] = []
  let server: Server
  beforeAll(async () => {
    const verifier = createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'shop' })
    server = await make(verifier, {
      allow: ({ namespace }) => namespace === 'good',
      onRefused: ({ code }) => refusals.push(code),
    })
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const tokenOf = (namespace: string, audience = 'shop') =>
    issuer.serviceAccountToken({ namespace, name: 'bot', audience })
  const bearer = (token: string) => ['authorization', `Bearer ${token}`]

  test('who has a good token gets in, by name', async () => {
    expect(await ask(server, bearer(tokenOf('good')))).toMatchObject({
      status: 200,
      body: 'hello good/bot',
    })
  })

  test.each<[string, () => string[], number, string, string]>([
    ['no token', () => [], 401, 'missing', 'Bearer'],
    ['another scheme', () => ['authorization', 'Basic YTpi'], 401, 'malformed', 'invalid_token'],
    [
      'a token for others',
      () => bearer(tokenOf('good', 'bank')),
      401,
      'wrong-audience',
      'invalid_token',
    ],
    [
      'two tokens',
      () => [...bearer(tokenOf('good')), ...bearer(tokenOf('good'))],
      401,
      'malformed',
      'invalid_token',
    ],
    ['junk', () => bearer('junk'), 401, 'malformed', 'invalid_token'],
    ['no right', () => bearer(tokenOf('evil')), 403, 'not-allowed', 'insufficient_scope'],
  ])('%s is refused, and only we are told why', async (_what, headers, status, code, said) => {
    const answer = await ask(server, headers())
    expect([answer.status, refusals.pop()]).toEqual([status, code])
    expect(answer.headers['www-authenticate']).toContain(said)
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.body).toMatch(/^\{"error":"[a-z_]+"\}$/)
    expect(answer.body).not.toContain(code)
  })

  test.each([
    [true, 200],
    [false, 403],
  ])('a right that is looked up is waited for: %s', async (isAllowed, status) => {
    const verifier = createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'shop' })
    const patient = await make(verifier, { allow: async () => Promise.resolve(isAllowed) })
    expect((await ask(patient, bearer(tokenOf('good')))).status).toBe(status)
    patient.closeAllConnections()
    patient.close()
  })

  test('an issuer that cannot be reached is 503, with a time to come back', async () => {
    const gone = await startTestIssuer({ algorithm: 'ES256' })
    const token = gone.serviceAccountToken({ audience: 'shop' })
    const verifier = createServiceAccountVerifier({ ...gone.verifierOptions, audience: 'shop' })
    await gone.stop()
    const lonely = await make(verifier, {})
    const answer = await ask(lonely, bearer(token))
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '5'])
    lonely.closeAllConnections()
    lonely.close()
  })

  test('a fault of our own lets nobody in', async () => {
    const broken = {
      issuers: [],
      verify: async () => Promise.reject(new Error('broken')),
      explain: async () => Promise.reject(new Error('broken')),
    }
    const server = await make(broken, {})
    const outcome = await ask(server, bearer('x')).then(
      ({ status }) => status,
      () => 'cut',
    )
    expect([500, 'cut']).toContain(outcome)
    server.closeAllConnections()
    server.close()
  })
})
