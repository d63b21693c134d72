import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, isIP, type LookupFunction, Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { keysByJwks } from '../../src/addon/token/verification-keys.ts'
import { discoverCluster } from '../../src/bootstrap/discovery/index.ts'
import { documentFromUrl } from '../../src/bootstrap/discovery/read-document.ts'
import { fetchTraced } from '../../src/bootstrap/discovery/requests.ts'
import { Secret, silentLogger, systemClock } from '../../src/core/index.ts'
import { refreshTokens } from '../../src/credentials/sources/oidc-refresh.ts'
import { addressTest } from '../../src/http/address-rules.ts'
import { labAuthority, labMaterial } from '../../src/http/tls-lab.suite.ts'
import { inspectIssuer } from '../../src/issuer/doctor/index.ts'
import { oidcUsers } from '../../src/issuer/oidc-users/index.ts'
import { documentsOfIssuer } from '../../src/issuer/publish/index.ts'
import { createTokenVerifier } from '../../src/issuer/relying-party/index.ts'
import { fetchProviderDocument } from '../../src/issuer/relying-party/provider-keys.ts'
import { renderJwks, signingKey } from '../../src/jose/index.ts'

const dns = vi.hoisted(() => ({ address: '' }))
vi.mock('node:dns', async (original) => ({
  ...(await original<object>()),
  lookup: (_name: string, _options: object, done: (error: null, found: object[]) => void) =>
    done(null, [{ address: dns.address, family: isIP(dns.address) }]),
}))

let respond: RequestListener
const paths: string[] = []
const listener: RequestListener = (request, response) => {
  paths.push(request.url ?? '')
  respond(request, response)
}
const plain = createServer(listener)
const secure = createTlsServer(listener)
const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port
const plainUrl = (): string => `http://127.0.0.1:${portOf(plain)}`
const secureUrl = (): string => `https://127.0.0.1:${portOf(secure)}`
let caPem: string

/** The addresses of connections that would be made; only our own servers are connected to. */
const dialed: string[] = []
// oxlint-disable-next-line typescript/unbound-method -- called with its socket below
const realConnect = Socket.prototype.connect

interface Target {
  readonly host: string
  readonly port: number
  readonly lookup: LookupFunction
}

beforeAll(async () => {
  const ca = await labAuthority()
  caPem = ca.bundlePem
  const { certPem, keyPem } = await labMaterial(ca)
  secure.setSecureContext({ cert: certPem, key: keyPem.reveal() })
  for (const server of [plain, secure]) await once(server.listen(0, '127.0.0.1'), 'listening')
  vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket, ...args) {
    const [first] = args as unknown[]
    const { host, port, lookup } = (Array.isArray(first) ? first[0] : first) as Target
    if ([portOf(plain), portOf(secure)].includes(Number(port)))
      return realConnect.apply(this, args as never)
    const end = (error: Error): void => process.nextTick(() => this.destroy(error))
    if (isIP(host) !== 0) {
      dialed.push(host)
      end(new Error('not connected'))
      return this
    }
    // As Node.js does it: the function of the request resolves, and its result is connected to.
    lookup(host, { all: true }, (error, found) => {
      if (!error)
        for (const { address } of [found].flat() as { address: string }[]) dialed.push(address)
      end(error ?? new Error('not connected'))
    })
    return this
  })
})
afterEach(() => {
  dialed.length = 0
  paths.length = 0
  for (const server of [plain, secure]) server.closeAllConnections()
})
afterAll(() => {
  vi.restoreAllMocks()
  for (const server of [plain, secure]) server.close()
})

const kinds = {
  public: '93.184.216.34',
  'public IPv6': '2606:4700::1111',
  private: '10.1.2.3',
  'unique local': 'fd12::7',
  loopback: '127.0.0.2',
  'loopback in IPv6': '::ffff:127.0.0.2',
  'link-local': '169.254.1.1',
  unspecified: '0.0.0.0',
  metadata: '169.254.169.254',
  'metadata in IPv6': '::ffff:169.254.169.254',
  'metadata by NAT64': '64:ff9b::169.254.169.254',
  'metadata by 6to4': '2002:a9fe:a9fe::1',
  'metadata of AWS in IPv6': 'fd00:ec2::254',
  'metadata of Alibaba Cloud': '100.100.100.200',
} as const
type Kind = keyof typeof kinds
const all = Object.keys(kinds) as Kind[]

const publicOnly: readonly Kind[] = ['public', 'public IPv6']
const loopbackOnly: readonly Kind[] = ['loopback', 'loopback in IPv6']
const inside: readonly Kind[] = [...publicOnly, 'private', 'unique local', ...loopbackOnly]
/** The default, for URLs that a user or an operator has given. */
const noMetadata: readonly Kind[] = [...inside, 'link-local', 'unspecified']

const { signal } = new AbortController()
const json = { 'content-type': 'application/json' }
const sendJson = (body: object): void => {
  respond = (_request, response) => response.writeHead(200, json).end(JSON.stringify(body))
}
const tokenOf = (issuer: string): string => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 600
  const claims = { iss: issuer, sub: 's', aud: 'a', iat: exp - 600, exp }
  return `${part({ alg: 'RS256', kid: 'k' })}.${part(claims)}.${'A'.repeat(342)}`
}
const verify = async (issuer: string, more: object = {}): Promise<unknown> =>
  createTokenVerifier({ issuer, audience: 'a', ...more }).verify(tokenOf(issuer))
const bootstrapToken = 'abcdef.0123456789abcdef'
const oidc = (issuer: string): Promise<unknown> =>
  refreshTokens({ issuer, clientId: 'me' }, new Secret('refresh'), signal)

const resolveByTable = async (name: string): Promise<string[]> => [
  isIP(name) === 0 ? dns.address : name,
]

interface Caller {
  readonly fetch: (url: string) => Promise<unknown>
  /** The kinds of addresses that are connected to, by the scheme of the URL. */
  readonly https: readonly Kind[]
  readonly http: readonly Kind[]
}

/** Every place in which a document is fetched, by who names its URL. */
const callers: Readonly<Record<string, Caller>> = {
  'relying party, issuer': { fetch: (url) => verify(url), https: publicOnly, http: [] },
  'relying party, issuer, private addresses allowed': {
    fetch: (url) => verify(url, { allowPrivateAddresses: true }),
    https: inside,
    http: [],
  },
  'relying party, jwks_uri of a document': {
    fetch: (url) => {
      sendJson({ issuer: plainUrl(), jwks_uri: url })
      return verify(plainUrl(), { allowHttpOnLoopback: true })
    },
    https: publicOnly,
    http: loopbackOnly,
  },
  '--oidc-issuer-url': {
    fetch: async (issuer) =>
      oidcUsers({
        issuer,
        clientId: 'a',
        algorithms: ['RS256'],
        usernameClaim: 'sub',
        requiredClaims: new Map(),
        clock: systemClock,
        log: silentLogger,
      }).authenticateToken(tokenOf(issuer), signal),
    https: inside,
    http: [],
  },
  'doctor, issuer': {
    fetch: (url) => inspectIssuer(url, { clock: systemClock, resolve: resolveByTable }),
    https: noMetadata,
    http: noMetadata,
  },
  'doctor, jwks_uri of a public issuer': {
    fetch: (url) => {
      sendJson({ issuer: plainUrl(), jwks_uri: url })
      const resolve = async (name: string) =>
        name === '127.0.0.1' ? ['93.184.216.1'] : resolveByTable(name)
      return inspectIssuer(plainUrl(), { clock: systemClock, resolve })
    },
    https: publicOnly,
    http: publicOnly,
  },
  'issuer publish, --from': {
    fetch: (url) => documentsOfIssuer(url, undefined, {})(signal),
    https: noMetadata,
    http: [],
  },
  'issuer publish, jwks_uri of a document': {
    fetch: (url) => {
      sendJson({ issuer: secureUrl(), jwks_uri: url })
      return documentsOfIssuer(secureUrl(), caPem, {})(signal)
    },
    https: noMetadata,
    http: [],
  },
  'kubeconfig, idp-issuer-url': { fetch: oidc, https: noMetadata, http: loopbackOnly },
  'kubeconfig, token_endpoint of a document': {
    fetch: (url) => {
      sendJson({ issuer: plainUrl(), token_endpoint: url })
      return oidc(plainUrl())
    },
    https: noMetadata,
    http: loopbackOnly,
  },
  'guard, JWK set': {
    fetch: (url) => keysByJwks({ url }, signal),
    https: noMetadata,
    http: loopbackOnly,
  },
  'discovery by token': {
    fetch: (url) =>
      discoverCluster({
        method: { by: 'token', addresses: [url], token: bootstrapToken },
        timeoutMs: 0,
      }),
    https: noMetadata,
    http: [],
  },
  'discovery by URL': {
    fetch: (url) => {
      const systemRoots = async () => [caPem]
      return discoverCluster({ method: { by: 'url', url }, timeoutMs: 0 }, { systemRoots })
    },
    https: noMetadata,
    http: [],
  },
  'discovery by URL, redirect': {
    fetch: (url) => {
      respond = (_request, response) => response.writeHead(302, { location: url }).end()
      const systemRoots = async () => [caPem]
      const method = { by: 'url' as const, url: `${secureUrl()}/first` }
      return discoverCluster({ method, timeoutMs: 0 }, { systemRoots })
    },
    https: noMetadata,
    http: [],
  },
}

describe.each(Object.entries(callers))('%s [SEC-R1206]', (_name, caller) => {
  const reached = async (urlOf: (address: string) => string): Promise<Kind[]> => {
    const found: Kind[] = []
    for (const kind of all) {
      dns.address = kinds[kind]
      await caller.fetch(urlOf(kinds[kind])).catch(() => {})
      if (dialed.splice(0).length > 0) found.push(kind)
    }
    return found
  }
  const literal = (address: string): string => (address.includes(':') ? `[${address}]` : address)

  test('connects to allowed addresses only', async () => {
    expect(await reached((address) => `https://${literal(address)}:1`)).toEqual(caller.https)
  })

  test('connects to allowed addresses of a name only', async () => {
    expect(await reached(() => 'https://name.example:1')).toEqual(caller.https)
  })

  test('connects without TLS to allowed addresses only', async () => {
    expect(await reached((address) => `http://${literal(address)}:1`)).toEqual(caller.http)
  })

  test('connects without TLS to allowed addresses of a name only', async () => {
    expect(await reached(() => 'http://localhost:1')).toEqual(caller.http)
  })
})

const key = signingKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
/** A document for every caller. */
const document = (): string =>
  JSON.stringify({
    ...(JSON.parse(String(renderJwks([key.publicKey]))) as object),
    issuer: plainUrl(),
    jwks_uri: `${plainUrl()}/keys`,
    token_endpoint: `${plainUrl()}/token`,
    id_token: 'a.b.c',
  })

/** Whether a caller uses what our server responds with. */
const readers: Readonly<Record<string, () => Promise<boolean>>> = {
  'relying party': async () => {
    const rules = {
      isAllowedAddress: addressTest(false),
      allowHttp: 'loopback' as const,
      timeoutMs: 5_000,
      maxBytes: 50 * 1024,
    }
    await fetchProviderDocument(new URL(plainUrl()), rules)
    return true
  },
  doctor: async () => {
    const resolve = async () => ['127.0.0.1']
    return (await inspectIssuer(plainUrl(), { clock: systemClock, resolve })).document !== undefined
  },
  kubeconfig: async () => (await oidc(plainUrl())) !== undefined,
  guard: async () => (await keysByJwks({ url: plainUrl() }, signal)).length === 1,
  'discovery by token': async () => {
    const request = { url: secureUrl(), timeoutMs: 10_000, signal, log: silentLogger }
    return (await fetchTraced(request, { verify: false })).status === 200
  },
  'discovery by URL': async () => {
    const context = { timeoutMs: 10_000, signal, log: silentLogger }
    return (await documentFromUrl(`${secureUrl()}/first`, [caPem], context)).text !== ''
  },
}
const everyReader = Object.keys(readers)

/** The callers that use a response. */
async function users(): Promise<string[]> {
  const found: string[] = []
  for (const [name, read] of Object.entries(readers)) {
    if (await read().catch(() => false)) found.push(name)
  }
  return found
}

describe('a response is used by', () => {
  test.each<[string, RequestListener, readonly string[]]>([
    ['a document', (_q, response) => response.writeHead(200, json).end(document()), everyReader],
    [
      'another content type',
      (_q, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(document()),
      everyReader.filter((name) => name !== 'relying party'),
    ],
    [
      'a compressed body',
      (_q, response) =>
        response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync(document())),
      [],
    ],
    [
      'a large body with its length',
      (_q, response) => {
        const body = document() + ' '.repeat(2 * 1024 * 1024)
        response.writeHead(200, { ...json, 'content-length': body.length }).end(body)
      },
      [],
    ],
    [
      'a large body without its length',
      (_q, response) => {
        response.writeHead(200, json).write(document())
        response.end(' '.repeat(2 * 1024 * 1024))
      },
      [],
    ],
    [
      'half a body',
      (_q, response) => {
        response.writeHead(200, { ...json, 'content-length': '1000' })
        response.write('{', () => response.destroy())
      },
      [],
    ],
  ])('%s', async (_name, listen, expected) => {
    respond = listen
    expect(await users()).toEqual(expected)
  })

  test('a redirect: only discovery by URL follows it, as documented', async () => {
    respond = ({ url }, response) => {
      if (url === '/next') response.writeHead(200, json).end(document())
      else response.writeHead(302, { location: '/next' }).end()
    }
    expect(await users()).toEqual(['discovery by URL'])
    expect(paths.filter((path) => path === '/next')).toHaveLength(1)
  })

  test.each<[string, RequestListener]>([
    ['no head', () => {}],
    ['a head without a body', (_q, response) => response.writeHead(200, json).flushHeaders()],
    ['half a body', (_q, response) => response.writeHead(200, json).write('{')],
  ])('no caller when its time is over: %s', async (_name, listen) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      for (const read of Object.values(readers)) {
        const received = new Promise<void>((resolve) => {
          respond = (request, response) => {
            listen(request, response)
            resolve()
          }
        })
        const outcome = read().catch(() => false)
        await received
        vi.advanceTimersByTime(30_000)
        expect(await outcome).toBe(false)
      }
    } finally {
      vi.useRealTimers()
    }
  })
})
