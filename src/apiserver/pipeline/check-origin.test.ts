import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasReason, parseRequestInfo } from '../../core/index.ts'
import { maxOriginAgeMs, maxOriginsPerUser, maxOriginUsers } from '../limits.ts'
import { checkOrigin, checkProvenOrigin, OriginPolicy } from './check-origin.ts'
import { Exchange, SignalPool } from './exchange.ts'
import { depsWith, identity, type Running, serve } from './pipeline.suite.ts'

const host = 'api.example:6443'
const allowed = 'https://front.example'
const addonAllowed = 'https://addons.example'
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const absent = undefined

/** Values of Sec-Fetch-Site; duplicates arrive joined. */
const sites = [
  absent,
  'same-origin',
  'none',
  'same-site',
  'cross-site',
  '',
  'same-origin, cross-site',
]
const origins = [
  absent,
  `https://${host}`,
  'https://API.example:6443',
  `http://${host}`,
  'https://api.example',
  'https://api.example:6444',
  'http://localhost:8001',
  'http://127.0.0.1:3000',
  'http://web--default.localhost:8001',
  'null',
  '',
  'https://evil.example',
  `https://${host}.evil.example`,
  `https://${host}, https://evil.example`,
  allowed,
  addonAllowed,
]
const referers = [absent, `https://${host}/x`, 'https://evil.example/', 'about:blank']
const modes = [absent, 'navigate document', 'navigate iframe', 'cors empty']
const targets = [
  '/api/v1/namespaces/a/services/s',
  '/api/v1/namespaces/a/services/s/proxy/x',
  '/apis/other.example/v1/things/t/proxy/x',
  '/version',
]

const allowedOrigins = { allowedOrigin: [allowed], addonAllowedOrigin: [addonAllowed] }
const deps = depsWith({ origins: new OriginPolicy(allowedOrigins) })

interface Case {
  readonly method: string
  readonly url: string
  readonly isUpgrade: boolean
  readonly site?: string | undefined
  readonly origin?: string | undefined
  readonly referer?: string | undefined
  readonly mode?: string | undefined
}

function* cases(): Generator<Case> {
  for (const method of methods)
    for (const url of targets)
      for (const isUpgrade of [false, true])
        for (const site of sites)
          for (const origin of origins)
            for (const referer of referers)
              for (const mode of modes)
                if (method !== 'OPTIONS' || url !== targets[0])
                  yield { method, url, isUpgrade, site, origin, referer, mode }
}

/** The rule once more, as the documents state it. */
function isExpected(it: Case): boolean {
  const isProxy = it.url.includes('/proxy/')
  if (it.site === 'same-origin' || it.site === 'none') return true
  const isSafe = (it.method === 'GET' || it.method === 'HEAD') && !it.isUpgrade
  if (isSafe && !isProxy) return true
  if (isSafe && it.mode === 'navigate document') return true
  if (isSafe && it.site === undefined && it.origin === undefined) return true
  if (it.origin === allowed || (isProxy && it.origin === addonAllowed)) return true
  if (it.site !== undefined) return false
  if (it.origin !== undefined) return it.origin.toLowerCase() === `https://${host}`
  return it.referer === undefined || it.referer === `https://${host}/x`
}

function isLetThrough(it: Case): boolean {
  const [mode, dest] = it.mode?.split(' ') ?? []
  const headers = {
    host,
    ...(it.site !== undefined && { 'sec-fetch-site': it.site }),
    ...(it.origin !== undefined && { origin: it.origin }),
    ...(it.referer !== undefined && { referer: it.referer }),
    ...(mode !== undefined && { 'sec-fetch-mode': mode, 'sec-fetch-dest': dest }),
  }
  const request = {
    method: it.method,
    url: it.url,
    headers,
    socket: {},
  } as unknown as IncomingMessage
  const owner = {
    clock: deps.clock,
    signals: new SignalPool(),
    fail: () => {},
    reauthenticate: async () => undefined,
  }
  const upgrade = it.isUpgrade ? ({} as never) : undefined
  const exchange = new Exchange(request, {} as never, owner, upgrade)
  exchange.info = parseRequestInfo(it.method, it.url)
  try {
    checkOrigin(exchange, deps)
    exchange.authentication = identity('ann')
    checkProvenOrigin(exchange, { ...deps, origins: new OriginPolicy(allowedOrigins) })
    return true
  } catch (error) {
    if (hasReason(error, 'Forbidden')) return false
    throw error
  }
}

test('[SEC-R401] pages of other origins neither write, nor upgrade, nor use add-ons: methods × fetch metadata × origins × referers', () => {
  const wrong: Case[] = []
  let total = 0
  let refused = 0
  for (const each of cases()) {
    total++
    const isThrough = isLetThrough(each)
    if (!isThrough) refused++
    if (isThrough !== isExpected(each)) wrong.push(each)
  }
  expect(wrong).toEqual([])
  expect(total).toBeGreaterThan(90_000)
  expect(refused).toBeGreaterThan(30_000)
}, 60_000)

describe.each(['HTTP/1.1', 'HTTP/2'] as const)('over %s', (version) => {
  let server: Running
  let authenticated = 0
  const routed: string[] = []
  beforeAll(async () => {
    const { authenticator } = depsWith()
    server = await serve(
      version,
      depsWith({
        authenticator: {
          name: 'counting',
          authenticate: (request, signal) => {
            authenticated++
            return authenticator.authenticate(request, signal)
          },
        },
        resources: ({ request }, response) => {
          routed.push(request.method ?? '')
          response.end()
        },
      }),
    )
  })
  afterAll(() => server.stop())

  const pods = '/api/v1/namespaces/a/pods'
  const foreign: [string, Record<string, string>][] = [
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['another site without an origin', { 'sec-fetch-site': 'cross-site' }],
    [
      'another port of localhost',
      { 'sec-fetch-site': 'same-site', origin: 'http://localhost:3000' },
    ],
    ['another port, by its origin only', { origin: 'http://localhost:3000' }],
    ['an opaque origin', { origin: 'null' }],
    ['a form of an old browser', { referer: 'https://evil.example/' }],
  ]

  test.each(foreign)(
    '[SEC-R401] %s writes nothing, and no credential is looked at',
    async (_name, headers) => {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const answer = await server.ask(pods, {
          method,
          headers: { authorization: 'Bearer ann', ...headers },
        })
        expect([method, answer.code, answer.status['reason']]).toEqual([method, 403, 'Forbidden'])
      }
      const read = await server.ask(pods, { headers: { authorization: 'Bearer ann', ...headers } })
      expect(read.code).toBe(200)
      expect([routed.splice(0), authenticated]).toEqual([['GET'], 1])
      authenticated = 0
    },
  )

  test('pages of this origin write', async () => {
    const origin = `https://127.0.0.1:${server.port}`
    for (const headers of [
      { origin },
      { 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1:8001' },
    ]) {
      const call = { method: 'POST', headers: { authorization: 'Bearer ann', ...headers } }
      expect((await server.ask(pods, call)).code).toBe(200)
    }
  })
})

describe('[SEC-R403] a WebSocket, of which Chromium says nothing but the origin', () => {
  let server: Running
  let upgraded = 0
  beforeAll(async () => {
    server = await serve(
      'HTTP/1.1',
      depsWith({
        upgrade: (_request, client) => {
          upgraded++
          client.response.end('upgraded')
        },
      }),
    )
  })
  afterAll(() => server.stop())

  async function shake(origin: string, user = 'ann'): Promise<number> {
    const socket = connect(server.port, '127.0.0.1')
    socket.write(
      `GET ${targets[1]} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${user}\r\nOrigin: ${origin}\r\n\r\n`,
    )
    return Number((await text(socket)).split(' ')[1])
  }

  const proxy = 'http://localhost:8001'
  const foreign = ['https://evil.example', 'http://localhost:3000', 'null', 'x', `http://${host}`]

  test('is opened by pages of this origin, and by no others', async () => {
    for (const origin of [...foreign, proxy])
      expect([origin, await shake(origin)]).toEqual([origin, 403])
    expect(upgraded).toBe(0)
    expect(await shake(`https://${host}`)).toBe(200)
  })

  test('is opened behind a local proxy once the browser of that user has called its origin the same', async () => {
    const page = (site: string) => ({
      authorization: 'Bearer ann',
      'sec-fetch-site': site,
      referer: `${proxy}${targets[1]}`,
    })
    for (const site of ['cross-site', 'same-site', 'none'])
      await server.ask('/version', { headers: page(site) })
    expect(await shake(proxy)).toBe(403)
    await server.ask('/version', { headers: page('same-origin') })
    expect(await shake(proxy)).toBe(200)
    expect(await shake(proxy, 'bob')).toBe(403)
    for (const origin of foreign) expect([origin, await shake(origin)]).toEqual([origin, 403])
  })
})

test('proven origins are bounded by user, by number and by age', () => {
  const origins = new OriginPolicy({ allowedOrigin: [], addonAllowedOrigin: [] })
  origins.prove('ann', 'http://a', 0)
  expect(origins.isProven('ann', 'http://a', maxOriginAgeMs - 1)).toBe(true)
  expect(origins.isProven('ann', 'http://a', maxOriginAgeMs)).toBe(false)
  for (let at = 0; at < maxOriginsPerUser; at++) origins.prove('ann', `http://${at}`, 0)
  expect(origins.isProven('ann', 'http://a', 0)).toBe(false)
  expect(origins.isProven('ann', 'http://0', 0)).toBe(true)
  for (let at = 0; at < maxOriginUsers; at++) origins.prove(`user-${at}`, 'http://a', 0)
  expect(origins.isProven('ann', 'http://0', 0)).toBe(false)
  for (const unfit of ['null', `http://${'a'.repeat(300)}`]) {
    origins.prove('eve', unfit, 0)
    expect(origins.isProven('eve', unfit, 0)).toBe(false)
  }
})
