import { once } from 'node:events'
import { createServer as createPlainServer, type RequestListener, type Server } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import { renderJwks, verificationKey } from '../../jose/index.ts'
import { type LabCertificate, labCertificate, named } from '../../pki/certificate-lab.suite.ts'
import { privateKeyPem } from '../../pki/trust/index.ts'
import { addonSigningKey } from './signing-key.ts'
import { forgedToken, keyKinds, LabBundle, LabClock, labLeaf } from './token-lab.suite.ts'
import { keysByJwks, RemoteAddonKeys } from './verification-keys.ts'
import { AddonTokenVerifier } from './verifier.ts'

const serverName = 'kubernetes.default.svc'
const audiences = new Set(['kube-system/dashboard'])
const [, makeKey = () => expect.fail()] = keyKinds[0] ?? []

/** TLS goes by the clock of the machine. */
const notAfter = Date.now() + 3_600_000
const newCa = () => labCertificate({ subject: named('kubernetes'), ca: true, notAfter })

let ca: LabCertificate
let leaf: LabCertificate
beforeAll(async () => {
  ca = await newCa()
  leaf = await labLeaf(ca, { notAfter })
})

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A server with a certificate of the lab; its address. */
async function serve(answer: RequestListener, by = leaf): Promise<string> {
  const tls = { key: privateKeyPem(by.key).reveal(), cert: String(by.certificate) }
  return `https://127.0.0.1:${await listen(createServer(tls, answer))}/jwks`
}

const signerOf = (key = makeKey()) => ({ current: addonSigningKey(key) })
const documentOf = (...signers: ReturnType<typeof signerOf>[]): Buffer =>
  renderJwks(signers.map(({ current }) => verificationKey(current.key)))
const soon = (ms = 10_000): AbortSignal => AbortSignal.timeout(ms)

const load = (url: string, signal = soon()) =>
  keysByJwks({ url, bundle: new LabBundle(ca), serverName }, signal)

describe('a JWK set by HTTPS [ADDON-R26]', () => {
  const signer = signerOf()

  test('is asked for as JSON, with a credential if there is one', async () => {
    let asked: NodeJS.Dict<string | string[]> = {}
    const url = await serve(({ headers }, response) => {
      asked = headers
      response.end(documentOf(signer))
    })
    const readToken = async (): Promise<string> => 't1'
    const keys = await keysByJwks({ url, bundle: new LabBundle(ca), serverName, readToken }, soon())
    expect(keys.map(({ kid }) => kid)).toEqual([signer.current.kid])
    expect(asked).toMatchObject({ authorization: 'Bearer t1', accept: /jwk-set/ })
  })

  test('leaves out keys that verify nothing', async () => {
    const { keys } = JSON.parse(String(documentOf(signer))) as { keys: object[] }
    const odd = [
      { kty: 'oct', k: 'AAAA' },
      { ...keys[0], d: 'AAAA' },
      { ...keys[0], use: 'enc' },
      7,
    ]
    const url = await serve((_request, response) =>
      response.end(JSON.stringify({ keys: [...odd, ...keys] })),
    )
    expect(await load(url)).toHaveLength(1)
  })

  test.each<[string, RequestListener, string]>([
    ['is a page', (_request, response) => response.end('<html>'), 'no JWK set'],
    ['has no keys', (_request, response) => response.end('{"keys":[]}'), 'no JWK set'],
    ['has two lists', (_q, response) => response.end('{"keys":[],"keys":[]}'), 'no JWK set'],
    ['is no JSON', (_request, response) => response.end('{'), 'no JWK set'],
    ['is refused', (_request, response) => response.writeHead(403).end('{}'), '403'],
    [
      'is said to be elsewhere',
      (_request, response) => response.writeHead(302, { location: '/other' }).end(),
      '302',
    ],
    ['is too large', (_request, response) => response.end(Buffer.alloc(70_000, 32)), 'too large'],
    [
      'has no end',
      (_request, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(16_384, 32)));
        }
        response.on('drain', more)
        more()
      },
      'too large',
    ],
    [
      'breaks off',
      (_request, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{')
        setImmediate(() => response.destroy())
      },
      'aborted',
    ],
  ])('that %s is a failure', async (_what, answer, message) => {
    await expect(load(await serve(answer))).rejects.toThrow(message)
  })

  test('that is said to be elsewhere is not fetched from there', async () => {
    const paths: unknown[] = []
    const url = await serve(({ url: path }, response) => {
      paths.push(path)
      response.writeHead(307, { location: `https://${serverName}/` }).end()
    })
    await load(url).catch(() => {})
    expect(paths).toEqual(['/jwks'])
  })

  test.each<[string, RequestListener]>([
    ['says nothing', () => {}],
    ['says its head only', (_request, response) => response.writeHead(200).flushHeaders()],
    ['stops in the middle', (_request, response) => response.write('{"keys":[')],
  ])('that %s ends with its signal', async (_what, answer) => {
    const url = await serve(answer)
    await expect(load(url, soon(100))).rejects.toThrow(/abort/i)
  })

  test.each([
    ['under another CA', async () => labLeaf(await newCa(), { notAfter }), /certificate/],
    ['under another name', () => labLeaf(ca, { extensions: [], notAfter }), /altnames|match/i],
    ['of yesterday', () => labLeaf(ca, { notAfter: Date.now() - 1000 }), /expired/],
  ])('of a server %s is not read', async (_what, order, message) => {
    let asked = 0
    const url = await serve(() => void asked++, await order())
    await expect(load(url)).rejects.toThrow(message)
    expect(asked).toBe(0)
  })

  test.each(['http://10.0.0.1/jwks', 'http://keys.example/jwks', 'ftp://127.0.0.1/', 'keys'])(
    'is never asked for at %s, where anybody could answer',
    async (url) => {
      await expect(load(url)).rejects.toThrow('must be an https address')
    },
  )

  test('may be on this very machine without TLS', async () => {
    const plain = createPlainServer((_request, response) => response.end(documentOf(signer)))
    const port = await listen(plain)
    for (const host of ['127.0.0.1', 'localhost'])
      expect(await load(`http://${host}:${port}/jwks`)).toHaveLength(1)
  })
})

describe('keys that are asked for by HTTPS', () => {
  let published: Buffer
  let isDown: boolean
  let asked: number
  let clock: LabClock
  let ended: AbortController
  let verifier: AddonTokenVerifier
  const first = signerOf()
  const second = signerOf()

  beforeEach(async () => {
    published = documentOf(first)
    isDown = false
    asked = 0
    clock = new LabClock()
    ended = new AbortController()
    const url = await serve((request, response) => {
      asked += 1
      if (isDown) request.socket.destroy()
      else response.end(published)
    })
    const keys = new RemoteAddonKeys({
      name: 'jwks',
      load: (signal) => load(url, signal),
      clock,
      log: silentLogger,
      signal: ended.signal,
    })
    await keys.start()
    verifier = new AddonTokenVerifier({ keys: [keys], clock })
  })
  afterEach(() => ended.abort())

  /** A token of now, by the published key and without a certificate. */
  const ask = async (signer: typeof first): Promise<string> => {
    const now = Math.floor(clock.now() / 1000)
    const claims = { iat: now, nbf: now, exp: now + 60 }
    const token = forgedToken(signer, { claims })
    try {
      return (await verifier.verify(token, audiences)).user
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  test('are renewed when a token names a new one, and the old one counts for its grace [ADDON-G3, ADDON-T62]', async () => {
    expect(await ask(first)).toBe('bob')
    published = documentOf(second, first)
    clock.turn(5_000)
    expect(await Promise.all([ask(second), ask(second), ask(first)])).toEqual(['bob', 'bob', 'bob'])
    expect(asked).toBe(2)
    published = documentOf(second)
    clock.turn(299_000)
    expect([await ask(first), await ask(second)]).toEqual(['bob', 'bob'])
    clock.turn(2_000)
    // What makes it ask again is a stranger's token.
    expect(await ask(signerOf())).toBe('unknown-key')
    expect([await ask(first), await ask(second)]).toEqual(['unknown-key', 'bob'])
  })

  test('are believed through an outage of less than an hour, and not asked for by every stranger [ADDON-T20]', async () => {
    isDown = true
    clock.turn(3_500_000)
    expect(await ask(first)).toBe('bob')
    expect(await Promise.all([ask(second), ask(second), ask(signerOf())])).toEqual([
      'unknown-key',
      'unknown-key',
      'unknown-key',
    ])
    expect(asked).toBe(2)
    clock.turn(101_000)
    expect(await ask(first)).toBe('keys-unavailable')
    isDown = false
    clock.turn(5_000)
    expect(await ask(first)).toBe('bob')
  })

  test('are asked for again soon while none is known, and until then nobody is believed', async () => {
    isDown = true
    const url = await serve((request, response) => {
      if (isDown) request.socket.destroy()
      else response.end(published)
    })
    const keys = new RemoteAddonKeys({
      name: 'jwks',
      load: (signal) => load(url, signal),
      clock,
      log: silentLogger,
      signal: ended.signal,
      cooldownMs: 10,
    })
    await keys.start()
    const own = new AddonTokenVerifier({ keys: [keys], clock })
    expect([own.problem, verifier.problem]).toEqual(['keys-unavailable', undefined])
    isDown = false
    await vi.waitFor(() => expect(own.problem).toBeUndefined(), 5_000)
  })

  test('stay what they were when what is published is unfit', async () => {
    for (const unfit of ['{"keys":[]}', '<html>', ' '.repeat(70_000)]) {
      published = Buffer.from(unfit)
      clock.turn(5_000)
      expect(await ask(second)).toBe('unknown-key')
      expect(await ask(first)).toBe('bob')
    }
    expect(asked).toBe(4)
  })

  test('are not waited for longer than five seconds [ADDON-X12]', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let given: AbortSignal | undefined
      const slow = new RemoteAddonKeys({
        name: 'jwks',
        load: (signal) => {
          given = signal
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
          })
        },
        clock,
        log: silentLogger,
        signal: ended.signal,
      })
      const started = slow.start()
      vi.advanceTimersByTime(4_999)
      expect(given?.aborted).toBe(false)
      vi.advanceTimersByTime(1)
      await started
      expect(given?.aborted).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })
})
