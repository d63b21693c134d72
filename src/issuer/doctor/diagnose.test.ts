import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { startTestIssuer } from '../../testing/index.ts'
import { diagnoseIssuer } from './diagnose.ts'
import { type IssuerInspection, inspectIssuer, type PublishedKey } from './inspect.ts'
import { type Probe, probe } from './probe.ts'
import { type RelyingPartyName, relyingPartyNames } from './relying-parties.ts'

const issuer = 'https://issuer.example'
const answered = (url: string, more: Partial<Probe> = {}): Probe => ({
  url,
  status: 200,
  contentType: 'application/json',
  cacheControl: 'public, max-age=3600',
  body: Buffer.from('{}'),
  ms: 20,
  trust: 'public',
  ...more,
})
const rsa: PublishedKey = {
  kid: 'a',
  kty: 'RSA',
  alg: 'RS256',
  hasAlg: true,
  hasUse: true,
  isUsable: true,
  isPrivate: false,
}
const p256: PublishedKey = { ...rsa, kid: 'b', kty: 'EC', alg: 'ES256' }
const document = {
  issuer,
  jwks_uri: `${issuer}/openid/v1/jwks`,
  authorization_endpoint: 'urn:kubernetes:programmatic_authorization',
  token_endpoint: 'urn:kubernetes:programmatic_authorization',
  id_token_signing_alg_values_supported: ['ES256', 'RS256'],
}
/** An issuer that all relying parties take. */
const good: IssuerInspection = {
  issuer,
  url: new URL(issuer),
  addresses: ['93.184.216.34'],
  isInside: false,
  discovery: answered(`${issuer}/.well-known/openid-configuration`),
  document,
  jwksUri: document.jwks_uri,
  jwks: answered(document.jwks_uri),
  keys: [rsa],
}
const all = (found: IssuerInspection) => diagnoseIssuer(found, relyingPartyNames)
const verdicts = (found: IssuerInspection, verdict: string): string[] =>
  all(found)
    .filter((each) => each.verdict === verdict)
    .map(({ relyingParty }) => relyingParty)

describe('what would fail where [ISS-P5]', () => {
  test('an issuer that keeps every rule works everywhere', () => {
    expect(verdicts(good, 'works')).toEqual([...relyingPartyNames])
  })

  const everywhere = [...relyingPartyNames]
  const internet = ['aws', 'gcp', 'azure', 'oci', 'confluent']
  test.each<[string, Partial<IssuerInspection>, readonly string[], string]>([
    [
      'http',
      { issuer: 'http://issuer.example', url: new URL('http://issuer.example') },
      everywhere,
      'not an https',
    ],
    ['a query', { issuer: `${issuer}?x` }, everywhere, 'a query or a fragment'],
    ['401', { discovery: answered('https://a/b', { status: 401 }) }, everywhere, 'no credential'],
    ['403 of the keys', { jwks: answered('https://a/b', { status: 403 }) }, everywhere, '403'],
    [
      '500',
      { discovery: answered('https://a/b', { status: 500 }) },
      everywhere,
      'responds with 500',
    ],
    ['a redirect', { jwks: answered('https://a/b', { status: 302 }) }, everywhere, 'redirects'],
    [
      'another issuer',
      { document: { ...document, issuer: `${issuer}/` } },
      everywhere,
      'issuer mismatch',
    ],
    ['no document', { document: undefined }, everywhere, 'is not a JSON object'],
    ['no jwks_uri', { jwksUri: undefined, jwks: undefined, keys: [] }, everywhere, 'no jwks_uri'],
    ['no keys', { keys: [] }, everywhere, 'has no keys'],
    ['a private key', { keys: [{ ...rsa, isPrivate: true }] }, everywhere, 'PRIVATE'],
    [
      'only keys of other kinds',
      { keys: [{ ...rsa, isUsable: false }] },
      everywhere,
      'no published key',
    ],
    [
      'a private address',
      { isInside: true, addresses: ['10.0.0.1'] },
      internet,
      'only private addresses',
    ],
    ['a port', { url: new URL('https://issuer.example:6443') }, ['aws'], 'the port 6443'],
    ['ES256', { keys: [p256] }, ['azure', 'kube-apiserver'], 'no key signs with RS256'],
    [
      'ES384',
      { keys: [{ ...p256, alg: 'ES384' }] },
      ['gcp', 'azure', 'vault', 'kube-apiserver', 'go-oidc'],
      '',
    ],
    [
      'keys without ids',
      { keys: [{ ...rsa, kid: undefined }] },
      ['aws', 'gcp', 'azure', 'jose', 'pyjwt'],
      'no kid',
    ],
    ['keys without alg', { keys: [{ ...rsa, hasAlg: false }] }, ['gcp'], 'no alg'],
    [
      'eleven keys',
      { keys: Array.from({ length: 11 }, (_n, i) => ({ ...rsa, kid: `${i}` })) },
      ['oci'],
      '11 keys',
    ],
    [
      '101 keys',
      { keys: Array.from({ length: 101 }, (_n, i) => ({ ...rsa, kid: `${i}` })) },
      ['aws', 'oci'],
      '101',
    ],
    ['the same key twice', { keys: [rsa, rsa] }, ['jose'], 'the same kid'],
    [
      'no placeholders',
      { document: { ...document, authorization_endpoint: undefined } },
      ['openidconnect-rs'],
      'authorization_endpoint',
    ],
    [
      'an empty placeholder',
      { document: { ...document, authorization_endpoint: '' } },
      ['openidconnect-rs'],
      'authorization_endpoint',
    ],
    [
      'text types',
      { jwks: answered('https://a/b', { contentType: 'text/plain' }) },
      ['openid-client', 'openidconnect-rs'],
      'text/plain',
    ],
    [
      'a list of algorithms that is wrong',
      { document: { ...document, id_token_signing_alg_values_supported: ['ES256'] } },
      ['vault', 'go-oidc'],
      'does not list RS256',
    ],
    [
      'a large key set',
      { jwks: answered('https://a/b', { body: Buffer.alloc(51_201) }) },
      ['nimbus'],
      '51201 bytes',
    ],
    [
      'a slash at the end',
      { issuer: `${issuer}/`, document: { ...document, issuer: `${issuer}/` } },
      ['istio'],
      '//',
    ],
  ])('%s', (_name, change, failing, words) => {
    const found = { ...good, ...change }
    expect(verdicts(found, 'fails')).toEqual(failing)
    const told = all(found).flatMap(({ findings }) => findings)
    expect(told.map(({ problem }) => problem).join('\n')).toContain(words)
    for (const { todo } of told) expect(todo).not.toBe('')
  })

  test('a private CA fails for whom it cannot be given to, and warns the others', () => {
    const given = { ...good, discovery: { ...good.discovery, trust: 'given' as const } }
    expect(verdicts(given, 'fails')).toEqual(internet)
    expect(verdicts(given, 'warns')).toEqual(everywhere.filter((name) => !internet.includes(name)))
    const untrusted = { ...good, discovery: { ...good.discovery, trust: 'none' as const } }
    expect(verdicts(untrusted, 'fails')).toEqual(everywhere)
  })

  test.each<[string, Partial<IssuerInspection>, readonly string[]]>([
    ['a slow answer', { jwks: answered('https://a/b', { ms: 600 }) }, ['nimbus']],
    ['a slower one', { jwks: answered('https://a/b', { ms: 6_000 }) }, ['aws', 'istio', 'nimbus']],
    ['a second kind of key', { keys: [rsa, p256] }, ['azure', 'kube-apiserver']],
    ['no max-age', { jwks: answered('https://a/b', { cacheControl: '' }) }, ['confluent']],
    ['no token_endpoint', { document: { ...document, token_endpoint: undefined } }, ['authlib']],
  ])('%s is a matter of care', (_name, change, warning) => {
    const found = { ...good, ...change }
    expect([verdicts(found, 'warns'), verdicts(found, 'fails')]).toEqual([warning, []])
  })
})

describe('an issuer is looked at as outsiders do', () => {
  const inspect = (url: string, caPem?: string) => inspectIssuer(url, { caPem, clock: systemClock })
  const causes = (found: IssuerInspection, name: RelyingPartyName): string =>
    diagnoseIssuer(found, [name])
      .flatMap(({ findings }) => findings.map(({ problem }) => problem))
      .join('\n')

  test('one on this machine with a CA of its own', async () => {
    const started = await startTestIssuer({ algorithm: 'ES256' })
    const unknown = await inspect(started.issuer)
    expect(unknown).toMatchObject({ isInside: true, discovery: { status: 200, trust: 'none' } })
    const known = await inspect(started.issuer, started.caPem)
    expect(known).toMatchObject({
      discovery: { trust: 'given' },
      keys: [{ alg: 'ES256', isUsable: true }],
    })
    expect(diagnoseIssuer(known, ['go-oidc'])).toMatchObject([{ verdict: 'warns' }])
    expect(causes(known, 'aws')).toMatch(/port.*|private addresses|not signed by a public CA/)
    await started.stop()
    expect(causes(await inspect(started.issuer), 'vault')).toContain(
      'cannot be reached (ECONNREFUSED)',
    )
  })

  const jwksUri = 'https://keys.example/jwks'
  /** Inspects an issuer whose names resolve to these addresses in turn; what was fetched, and from where. */
  async function fetched(
    names: Readonly<Record<string, readonly (readonly string[])[]>>,
    keysAt = jwksUri,
  ) {
    const fetches: [url: string, addresses: readonly string[]][] = []
    const lookups = new Map<string, number>()
    const sight = await inspectIssuer(issuer, {
      clock: systemClock,
      resolve: async (name) => {
        const count = lookups.get(name) ?? 0
        lookups.set(name, count + 1)
        return names[name]?.[count] ?? names[name]?.at(-1) ?? [name]
      },
      fetch: async (url, { addresses }) => {
        fetches.push([url, addresses])
        return answered(url, { body: Buffer.from(JSON.stringify({ issuer, jwks_uri: keysAt })) })
      },
    })
    return { sight, lookups, keys: fetches.slice(1).map(([, addresses]) => addresses) }
  }
  const outside = ['93.184.216.34']
  const within = ['10.0.0.7', '127.0.0.1', '::1', 'fd12::1', '::ffff:10.0.0.7', '64:ff9b::a00:7']
  const special = [
    '169.254.169.254',
    'fd00:ec2::254',
    '100.100.100.200',
    '::ffff:169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::',
    'fe80::1',
    '0.0.0.0',
    '::',
    '224.0.0.1',
  ]

  test.each([...within, ...special])(
    '[SEC-R1251] a document from outside does not lead to %s, by address, by name or by rebinding',
    async (address) => {
      const literal = address.includes(':') ? `[${address}]` : address
      const refused = await fetched({ 'issuer.example': [outside] }, `https://${literal}/jwks`)
      expect(causes(refused.sight, 'go-oidc')).toContain('its address is private')
      expect(refused.keys).toEqual([])
      const answers = [[[address]], [[...outside, address]], [outside, [address]], [[], [address]]]
      for (const keysName of answers) {
        const names = { 'issuer.example': [outside, [address]], 'keys.example': keysName }
        const { keys, lookups } = await fetched(names)
        expect(keys.flat().filter((each) => !outside.includes(each))).toEqual([])
        expect([...lookups.values()]).toEqual([1, 1])
      }
    },
  )

  test.each(special)(
    '[SEC-R1251] a document from inside does not lead to %s either',
    async (address) => {
      const names = { 'issuer.example': [['10.0.0.7']], 'keys.example': [[address]] }
      const { keys, sight } = await fetched(names)
      expect(keys).toEqual([])
      expect(causes(sight, 'go-oidc')).toContain('neither public nor private')
    },
  )

  test('a document leads to public addresses, from inside to private ones, and to those of its issuer', async () => {
    const from = async (own: readonly string[], keys: readonly string[]) =>
      (await fetched({ 'issuer.example': [own], 'keys.example': [keys] })).keys
    expect(await from(outside, ['1.1.1.1'])).toEqual([['1.1.1.1']])
    for (const address of within) expect(await from(['10.0.0.7'], [address])).toEqual([[address]])
    expect(await from(['169.254.1.1'], ['169.254.1.1'])).toEqual([['169.254.1.1']])
  })

  test('[SEC-R1251] the addresses that were checked are dialed, whatever the name resolves to', async () => {
    const server = createServer((_request, response) => response.end('{}'))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const outcome = async (addresses: readonly string[], host = 'name.invalid') => {
      const { status, problem } = await probe(`http://${host}:${port}/`, {
        addresses,
        clock: systemClock,
      })
      return status ?? problem
    }
    expect(await outcome(['127.0.0.1'])).toBe(200)
    expect(await outcome([])).toBe('ENOTFOUND')
    expect(await outcome([], 'localhost')).toBe('ENOTFOUND')
    server.closeAllConnections()
    server.close()
  })

  test.each<[string, RequestListener, string]>([
    ['a page', (_q, response) => response.end('<html>'), 'is not a JSON object'],
    [
      'a document without end',
      (_q, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536, ' ')));
          response.once('drain', more)
        }
        more()
      },
      'is not a JSON object',
    ],
    [
      'keys in a file',
      (_q, response) => response.end('{"issuer":"x","jwks_uri":"file:///etc/passwd"}'),
      'no jwks_uri that is a URL',
    ],
    [
      'a change of protocol',
      (_q, response) => response.writeHead(101, { upgrade: 'x', connection: 'upgrade' }).end(),
      'cannot be reached (HPE_PAUSED_UPGRADE)',
    ],
    [
      'a redirect',
      (_q, response) => response.writeHead(301, { location: '/x' }).end(),
      'redirects (301)',
    ],
  ])('%s', async (_name, listener, words) => {
    const server = createServer(listener)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    expect(causes(await inspect(`http://127.0.0.1:${port}`), 'go-oidc')).toContain(words)
    server.closeAllConnections()
    server.close()
  })
})
