import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import { addressTest } from '../../http/fetch/index.ts'
import { KeySet, renderJwks, signingKey } from '../../jose/index.ts'
import { IssuerUnavailable } from './errors.ts'
import {
  type DocumentRules,
  fetchProviderDocument,
  type ProviderDocument,
  providerKeys,
} from './provider-keys.ts'
import { readJwksUri, readKeySet } from './provider-metadata.ts'

const issuer = 'https://issuer.example'
const minute = 60_000
const newKey = () => signingKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
const [one, two] = [newKey(), newKey()]

/** An issuer without a network, a clock that is turned by hand, and what was asked. */
class Lab {
  now = 1_800_000_000_000
  setBackMs = 0
  cacheControl: string | undefined = 'public, max-age=3600'
  ageSeconds = 0
  keys = [one]
  failure: Error | undefined
  jwksBody: string | undefined
  fetch: (() => Promise<ProviderDocument>) | undefined
  readonly asked: string[] = []
  readonly clock = { now: () => this.now - this.setBackMs, monotonic: () => this.now }
  readonly keysFor = providerKeys({
    issuer,
    allowHttp: 'never',
    clock: this.clock,
    log: silentLogger,
    fetch: async (url) => this.fetch?.() ?? this.#answer(url),
    limits: {
      loadTimeoutMs: 100,
      cache: { minMs: minute, maxMs: 24 * 60 * minute, defaultMs: 5 * minute },
      cooldownMs: 30_000,
      retryMs: 5_000,
      maxStaleMs: 60 * minute,
    },
  })

  async #answer(url: URL): Promise<ProviderDocument> {
    this.asked.push(url.pathname)
    await Promise.resolve()
    if (this.failure) throw this.failure
    const jwks = this.jwksBody ?? renderJwks(this.keys.map(({ publicKey }) => publicKey))
    const text = url.pathname === '/keys' ? jwks : { issuer, jwks_uri: `${issuer}/keys` }
    const body = Buffer.isBuffer(text) || typeof text === 'string' ? text : JSON.stringify(text)
    const { cacheControl, ageSeconds } = this
    return { body: Buffer.from(body), cacheControl, ageSeconds }
  }

  async kids(kid: string | undefined = one.kid): Promise<string> {
    const found = await this.keysFor(kid).catch((error: IssuerUnavailable) => error)
    return found instanceof KeySet ? found.keys.map((key) => key.kid).join(' ') : found.code
  }
}

const unreachable = new IssuerUnavailable('unreachable', 'gone')

describe('keys are fetched when needed, by one request for all [ISS-P1]', () => {
  test('many who ask at once share one fetch, and later ones what it brought', async () => {
    const lab = new Lab()
    const all = await Promise.all(Array.from({ length: 50 }, () => lab.kids()))
    expect(new Set(all)).toEqual(new Set([one.kid]))
    await lab.kids()
    expect(lab.asked).toEqual(['/.well-known/openid-configuration', '/keys'])
  })

  test.each<[string | undefined, number, number]>([
    ['public, max-age=3600', 0, 60 * minute],
    ['max-age="600"', 0, 10 * minute],
    ['MAX-AGE=600', 0, 10 * minute],
    ['public, max-age=3600', 3_000, 10 * minute],
    ['max-age=0', 0, minute],
    ['max-age=5', 0, minute],
    ['max-age=600', 9_999, minute],
    ['no-store, max-age=600', 0, minute],
    ['max-age=99999999', 0, 24 * 60 * minute],
    ['max-age=-1', 0, 5 * minute],
    ['max-age=many', 0, 5 * minute],
    [undefined, 0, 5 * minute],
  ])('Cache-Control %j at the age of %i s keeps them for %i ms', async (said, age, keptMs) => {
    const lab = new Lab()
    lab.cacheControl = said
    lab.ageSeconds = age
    await lab.kids()
    lab.keys = [two]
    lab.now += keptMs * 0.79
    expect(await lab.kids()).toBe(one.kid)
    lab.now = 1_800_000_000_000 + keptMs
    expect(await lab.kids()).toBe(two.kid)
  })

  test('before they end they are fetched anew while the old ones serve', async () => {
    const lab = new Lab()
    await lab.kids()
    lab.keys = [one, two]
    lab.now += 50 * minute
    expect(await lab.kids()).toBe(one.kid)
    await new Promise(setImmediate)
    expect(await lab.kids()).toBe(`${one.kid} ${two.kid}`)
  })

  test('a clock that is put back does not make them last', async () => {
    const lab = new Lab()
    await lab.kids()
    lab.keys = [two]
    lab.setBackMs = 24 * 60 * minute
    expect(await lab.kids()).toBe(one.kid)
    lab.now += 60 * minute
    expect(await lab.kids()).toBe(two.kid)
  })
})

describe('a key id that nobody knows [ISS-P1]', () => {
  test('makes us look again, at most every half minute', async () => {
    const lab = new Lab()
    await lab.kids()
    lab.keys = [one, two]
    expect(await lab.kids(two.kid)).toBe(one.kid)
    lab.now += 30_000
    expect(await lab.kids(two.kid)).toBe(`${one.kid} ${two.kid}`)
    const before = lab.asked.length
    for (let tries = 0; tries < 1_000; tries += 1) await lab.kids(`storm ${tries}`)
    expect(lab.asked.length).toBe(before)
    lab.now += 30_000
    await Promise.all(Array.from({ length: 1_000 }, (_none, index) => lab.kids(`storm ${index}`)))
    expect(lab.asked.length).toBe(before + 1)
  })

  test('none is not unknown: nothing is fetched', async () => {
    const lab = new Lab()
    await lab.keysFor(undefined)
    lab.now += minute
    await lab.keysFor(undefined)
    expect(lab.asked).toHaveLength(2)
  })
})

describe('when the issuer fails [ISS-P2]', () => {
  test('there are no keys at first, and it is not asked again for five seconds', async () => {
    const lab = new Lab()
    lab.failure = unreachable
    expect(await lab.kids()).toBe('unreachable')
    lab.failure = undefined
    expect(await lab.kids()).toBe('unreachable')
    expect(lab.asked).toHaveLength(1)
    lab.now += 5_000
    expect(await lab.kids()).toBe(one.kid)
  })

  test.each<[string, (lab: Lab) => void]>([
    ['nobody answers', (lab) => Object.assign(lab, { failure: unreachable })],
    ['the set is empty', (lab) => Object.assign(lab, { jwksBody: '{"keys":[]}' })],
    ['the set is a page', (lab) => Object.assign(lab, { jwksBody: '<html>' })],
    [
      'the set has only keys that cannot be used',
      (lab) => Object.assign(lab, { jwksBody: '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}' }),
    ],
    ['the set says keys twice', (lab) => Object.assign(lab, { jwksBody: '{"keys":[],"keys":[]}' })],
  ])('%s: the last good set serves on, an hour and no longer', async (_name, fail) => {
    const lab = new Lab()
    await lab.kids()
    fail(lab)
    lab.now += 61 * minute
    expect(await lab.kids()).toBe(one.kid)
    lab.now += 58 * minute
    expect(await lab.kids()).toBe(one.kid)
    lab.now += 2 * minute
    expect(await lab.kids()).toMatch(/^(unreachable|bad-document)$/)
  })

  test('whether a key is unknown cannot be told, and a known one still serves', async () => {
    const lab = new Lab()
    await lab.kids()
    lab.failure = unreachable
    lab.now += 30_000
    expect(await lab.kids(two.kid)).toBe('unreachable')
    expect(await lab.kids(one.kid)).toBe(one.kid)
    lab.failure = undefined
    lab.now += 30_000
    expect(await lab.kids(two.kid)).toBe(one.kid)
  })

  test.each<[string, () => Promise<ProviderDocument>, string]>([
    ['throws', () => Promise.reject(new Error('own fault')), 'unreachable'],
    ['never ends', () => new Promise(() => {}), 'too-slow'],
  ])(
    'a fetch that %s is not the fault of a token, and holds up nobody',
    async (_n, fetch, code) => {
      const lab = new Lab()
      lab.fetch = fetch
      expect(await lab.kids()).toBe(code)
      lab.fetch = undefined
      lab.now += 5_000
      expect(await lab.kids()).toBe(one.kid)
    },
  )

  test('the address of the keys is asked for again', async () => {
    const lab = new Lab()
    await lab.kids()
    lab.failure = unreachable
    lab.now += 30_000
    await lab.kids(two.kid)
    lab.failure = undefined
    lab.now += 30_000
    await lab.kids(two.kid)
    expect(lab.asked.slice(-2)).toEqual(['/.well-known/openid-configuration', '/keys'])
  })
})

describe('documents that could be read in two ways are not used [ISS-P2]', () => {
  const read = (document: unknown) =>
    readJwksUri(
      Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)),
      issuer,
      'never',
    )
  const jwksUri = `${issuer}/keys`

  test.each<[string, unknown, string]>([
    [
      'of another issuer',
      { issuer: 'https://evil.example', jwks_uri: jwksUri },
      'has "https://evil',
    ],
    ['with a slash more', { issuer: `${issuer}/`, jwks_uri: jwksUri }, 'issuer mismatch'],
    ['in other case', { issuer: 'https://Issuer.example', jwks_uri: jwksUri }, 'issuer mismatch'],
    ['of nobody', { jwks_uri: jwksUri }, 'has none'],
    ['of a list', { issuer: [issuer], jwks_uri: jwksUri }, 'has none'],
    ['without keys', { issuer }, 'no jwks_uri'],
    ['with keys by http', { issuer, jwks_uri: 'http://issuer.example' }, 'is not an https URL'],
    ['with keys in a file', { issuer, jwks_uri: 'file:///etc/passwd' }, 'is not an https URL'],
    ['with a password', { issuer, jwks_uri: 'https://a:b@issuer.example' }, 'a password'],
    [
      'with two issuers',
      `{"issuer":"x","issuer":"${issuer}","jwks_uri":"${jwksUri}"}`,
      'duplicate',
    ],
    ['that is a list', '[]', 'not a JSON object'],
    ['with a BOM', `\ufeff{"issuer":"${issuer}","jwks_uri":"${jwksUri}"}`, 'not a JSON object'],
  ])('a discovery document %s', (_name, document, why) => {
    expect(() => read(document)).toThrow(why)
  })

  test.each<[string, () => unknown, string]>([
    ['two keys of one id', () => twoOfOneId(), 'ambiguous'],
    [
      'a hundred and one keys',
      () => Array.from({ length: 101 }, () => one.publicKey.key.export({ format: 'jwk' })),
      'more than 100',
    ],
    ['a private key', () => [one.key.export({ format: 'jwk' })], 'no usable key'],
    ['a key for encryption', () => [{ ...jwkOf(one), use: 'enc' }], 'no usable key'],
    ['an algorithm of another kind', () => [{ ...jwkOf(one), alg: 'HS256' }], 'no usable key'],
  ])('a key set with %s', (_name, keys, why) => {
    expect(() => readKeySet(Buffer.from(JSON.stringify({ keys: keys() })))).toThrow(why)
  })

  test('keys that are not for us are left out, the others count', () => {
    const keys = [{ kty: 'OKP', crv: 'Ed25519', x: 'x' }, 5, null, jwkOf(one), jwkOf(one)]
    expect(readKeySet(Buffer.from(JSON.stringify({ keys }))).keys).toHaveLength(1)
  })

  const jwkOf = ({ publicKey }: typeof one) => publicKey.key.export({ format: 'jwk' })
  const twoOfOneId = () => [one, two].map((key) => ({ ...jwkOf(key), kid: 'same' }))
})

describe('fetching a document', () => {
  const json = { 'content-type': 'application/json' }
  let respond: RequestListener
  const server = createServer((request, response) => respond(request, response))
  const at = (): URL => new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
  })
  afterEach(() => server.closeAllConnections())
  afterAll(() => {
    server.close()
  })
  const rules: DocumentRules = {
    isAllowedAddress: addressTest(false),
    allowHttp: 'loopback',
    timeoutMs: 5_000,
    maxBytes: 1_000,
  }

  test.each<[string, string, RequestListener]>([
    ['a redirect', 'redirected', (_q, response) => response.writeHead(302).end()],
    ['an error', 'bad-status', (_q, response) => response.writeHead(500, json).end('{}')],
    [
      'an error with a large body',
      'bad-status',
      (_q, response) => response.writeHead(500).end('x'.repeat(1_001)),
    ],
    ['no content', 'bad-status', (_q, response) => response.writeHead(204).end()],
    [
      'a page',
      'bad-document',
      (_q, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('{}'),
    ],
    [
      'a compressed body',
      'bad-document',
      (_q, response) => response.writeHead(200, { ...json, 'content-encoding': 'br' }).end('{}'),
    ],
    [
      'a large body',
      'too-large',
      (_q, response) => response.writeHead(200, json).end(' '.repeat(1_001)),
    ],
    ['no response', 'unreachable', (request) => request.socket.destroy()],
  ])('%s is the public code %s [ISS-P2]', async (_name, code, listener) => {
    respond = listener
    await expect(fetchProviderDocument(at(), rules)).rejects.toMatchObject({
      name: 'IssuerUnavailable',
      code,
    })
  })

  test.each([
    ['https://10.0.0.1/', 'blocked-address'],
    ['http://10.0.0.1/', 'bad-document'],
  ])('%s is the public code %s', async (url, code) => {
    await expect(fetchProviderDocument(new URL(url), rules)).rejects.toMatchObject({ code })
  })

  test('a slow one is the public code too-slow', async () => {
    respond = () => {}
    await expect(fetchProviderDocument(at(), { ...rules, timeoutMs: 50 })).rejects.toMatchObject({
      code: 'too-slow',
    })
  })

  test.each([
    ['its own origin', () => at().origin, 'Bearer of-mine'],
    ['another port', () => 'http://127.0.0.1:1', undefined],
    ['another scheme', () => at().origin.replace('http', 'https'), undefined],
  ])('a credential is sent to its own origin only: %s', async (_name, origin, expected) => {
    let seen: string | undefined
    respond = ({ headers }, response) => {
      seen = headers.authorization
      response.writeHead(200, json).end('{}')
    }
    const credential = { origin: origin(), token: () => 'of-mine\n' }
    await fetchProviderDocument(at(), { ...rules, credential })
    expect(seen).toBe(expected)
  })
})
