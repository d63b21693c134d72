import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { labCertificate, named } from '../../src/pki/certificate-lab.suite.ts'
import { startTestIssuer } from '../../src/testing/index.ts'
import { eventually } from '../support/eventually.ts'
import { type CommandOutcome, runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, JumpingClock, startInProcess } from '../support/in-process-server.ts'

const discovery = '.well-known/openid-configuration'
const jwks = 'openid/v1/jwks'
const accounts = '/api/v1/namespaces/default/serviceaccounts'

interface Key {
  readonly kid: string
  readonly stage: string
  readonly signsFrom: string
}

let scratch = ''
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'issuer-commands-'))
})
afterEach(() => rm(scratch, { recursive: true, force: true }))

const run = (server: InProcessServer, ...args: string[]): Promise<CommandOutcome> =>
  runInProcess(['issuer', ...args, '--data-dir', server.dataDirectory])

async function keysOf(server: InProcessServer): Promise<Key[]> {
  const { stdout } = await run(server, 'keys', '--output', 'json')
  return (JSON.parse(stdout) as { keys: Key[] }).keys
}

async function publishedKids(server: InProcessServer): Promise<string[]> {
  const { text } = await (await server.admin()).get(`/${jwks}`)
  return (JSON.parse(text) as { keys: Key[] }).keys.map(({ kid }) => kid)
}

async function newToken(server: InProcessServer): Promise<string> {
  const admin = await server.admin()
  await admin.post(accounts, { metadata: { name: 'bot' } })
  const answer = await admin.post(`${accounts}/bot/token`, {})
  return JSON.parse(answer.text).status.token
}

/** The fingerprint of the certificate that a server shows. */
async function certificateAt(url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerX509Certificate()?.fingerprint256 ?? ''
  } finally {
    socket.destroy()
  }
}

const kidOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid

describe('keys and their rotation', () => {
  let server: InProcessServer
  const clock = new JumpingClock()
  beforeAll(async () => {
    server = await startInProcess({ clock })
  })
  afterAll(() => server.close())
  let old = ''

  test('the first key is the one of the PKI, and it signs [ISS-G1]', async () => {
    const [key, ...others] = await keysOf(server)
    old = key?.kid ?? ''
    expect([key?.stage, others]).toEqual(['signing', []])
    expect(kidOf(await newToken(server))).toBe(old)
    const { stdout } = await run(server, 'keys')
    expect(stdout).toMatch(
      /^KEY ID +ALGORITHM +STAGE +AGE +SIGNS FROM +LAST TOKEN UNTIL +DROPPED\n/,
    )
    expect(stdout).toMatch(new RegExp(`^${old} +RS256 +signing +0h`, 'm'))
  })

  test('rotate shows a key before it signs, and says when it will [ISS-G2]', async () => {
    const { code, stdout } = await run(server, 'rotate')
    const [, next] = await keysOf(server)
    expect([code, next?.stage]).toEqual([0, 'next'])
    expect(stdout).toContain(`key ${next?.kid} is published`)
    expect(stdout).toContain(next?.signsFrom)
    // It has signed nothing yet.
    const { stdout: shown } = await run(server, 'keys')
    expect(shown).toMatch(
      new RegExp(`^${next?.kid} +RS256 +next +0h +${next?.signsFrom} +- +-$`, 'm'),
    )
    await eventually('both keys', async () => (await publishedKids(server)).length === 2)
    expect(kidOf(await newToken(server))).toBe(old)
    clock.jump(91 * 60_000)
    expect(kidOf(await newToken(server))).toBe(next?.kid)
    expect(await publishedKids(server)).toContain(old)
  })

  test('--show-for does not go with --now, and is no shorter than caches need', async () => {
    const words = async (...args: string[]) => {
      const { code, stderr } = await run(server, 'rotate', ...args)
      return `${code} ${stderr.split('\n')[0]}`
    }
    expect(await words('--now', '--yes', '--show-for', '2h')).toContain(
      '2 error: --now shows no key',
    )
    expect(await words('--show-for', '1h')).toContain('2 error: --show-for must be from 1h30m')
  })

  test('rotate twice is refused while the first is under way', async () => {
    clock.jump(-91 * 60_000)
    const { code, stderr } = await run(server, 'rotate')
    expect([code, stderr]).toEqual([1, expect.stringContaining('a rotation is in progress')])
  })

  test('rotate --now says what it breaks, and does it only with --yes [ISS-G5]', async () => {
    const before = await publishedKids(server)
    const token = await newToken(server)
    const asked = await run(server, 'rotate', '--now')
    expect([asked.code, asked.stderr]).toEqual([
      1,
      expect.stringContaining('every token of every service account dies'),
    ])
    expect(await publishedKids(server)).toEqual(before)
    expect((await server.as({ token }).get(`/${jwks}`)).status).toBe(200)
    const done = await run(server, 'rotate', '--now', '--yes')
    expect(done.code).toBe(0)
    await eventually('one key', async () => (await publishedKids(server)).length === 1)
    expect(before).not.toContain((await publishedKids(server))[0])
    expect((await server.as({ token }).get(`/${jwks}`)).status).toBe(401)
    expect((await server.as({ token: await newToken(server) }).get(`/${jwks}`)).status).toBe(200)
  })
})

test('with key files rotate and keys are refused with the reason [ISS-G6]', async () => {
  const file = join(scratch, 'sa.key')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  await writeFile(file, privateKey.export({ type: 'pkcs1', format: 'pem' }))
  const server = await startInProcess({ flags: ['--service-account-signing-key-file', file] })
  try {
    for (const args of [['rotate'], ['rotate', '--now', '--yes'], ['keys']]) {
      const { code, stderr } = await run(server, ...args)
      expect([code, stderr]).toEqual([1, expect.stringContaining('reads its keys from files')])
    }
    expect(server.log).not.toContain('PRIVATE KEY')
  } finally {
    await server.close()
  }
})

describe('publishing', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess({ flags: ['--service-account-issuer-public'] })
  })
  afterAll(() => server.close())

  test('publish writes both documents byte by byte, and a manifest [ISS-G7, ISS-R13, ISS-R22]', async () => {
    const out = join(scratch, 'public')
    const { code, stdout } = await run(server, 'publish', '--out', out, '--output', 'json')
    expect(code).toBe(0)
    const { files } = JSON.parse(stdout) as { files: string[] }
    // In this order: a key must be there before it is spoken of.
    expect(files).toEqual([jwks, discovery, 'sallyport-publish.json'])
    const admin = await server.admin()
    for (const path of [jwks, discovery]) {
      expect(await readFile(join(out, path), 'utf8')).toBe((await admin.get(`/${path}`)).text)
      expect((await stat(join(out, path))).mode & 0o777).toBe(0o644)
    }
    const manifest = JSON.parse(await readFile(join(out, 'sallyport-publish.json'), 'utf8'))
    expect(manifest.files).toMatchObject([
      { path: jwks, contentType: 'application/jwk-set+json', cacheControl: 'public, max-age=3600' },
      { path: discovery, contentType: 'application/json', cacheControl: 'public, max-age=3600' },
    ])
    const all = await readdir(out, { recursive: true, withFileTypes: true })
    expect(all.filter((entry) => entry.isFile())).toHaveLength(3)
    const again = await run(server, 'publish', '--out', out)
    expect(again.stdout).toContain('nothing has changed')
  })

  test('--jwks-uri says where the key set will be, and puts it there', async () => {
    const issuer = `https://127.0.0.1:${server.port}`
    await run(server, 'publish', '--out', scratch, '--jwks-uri', `${issuer}/keys.json`)
    const document = JSON.parse(await readFile(join(scratch, discovery), 'utf8'))
    expect(document.jwks_uri).toBe(`${issuer}/keys.json`)
    expect(JSON.parse(await readFile(join(scratch, 'keys.json'), 'utf8')).keys).toHaveLength(1)
  })

  test.each(['http://tokens.example/jwks', 'https://', 'tokens'])(
    '--jwks-uri %s is refused',
    async (uri) => {
      const { code, stderr } = await run(server, 'publish', '--out', scratch, '--jwks-uri', uri)
      expect([code, stderr]).toEqual([2, expect.stringContaining('must be an https URL')])
    },
  )

  test('--from takes them from any cluster: by kubeconfig or by the address of the issuer [ISS-G8]', async () => {
    const ca = join(scratch, 'ca.crt')
    await writeFile(ca, server.serving.pki.clusterCa.bundlePem)
    const sources = [
      ['--from', server.serving.adminKubeconfig],
      ['--from', `https://127.0.0.1:${server.port}`, '--certificate-authority', ca],
    ]
    const expected = (await (await server.admin()).get(`/${jwks}`)).text
    for (const [index, source] of sources.entries()) {
      const out = join(scratch, String(index))
      const { code, stderr } = await runInProcess(['issuer', 'publish', '--out', out, ...source])
      expect([code, stderr]).toEqual([0, ''])
      expect(await readFile(join(out, jwks), 'utf8')).toBe(expected)
    }
  })

  test('the URL of a server with a private CA leads to the option for it', async () => {
    const source = ['--from', `https://127.0.0.1:${server.port}`, '--out', scratch]
    const { code, stderr } = await runInProcess(['issuer', 'publish', ...source])
    expect([code, stderr]).toEqual([1, expect.stringContaining('--certificate-authority FILE')])
  })

  test.each([
    ['that nobody serves', 'https://127.0.0.1:1', 'check the URL of the issuer'],
    ['below which nothing is public', '/api', 'give a kubeconfig of the cluster instead'],
  ])('a URL %s is told apart from one with a private CA', async (_what, url, hint) => {
    const ca = join(scratch, 'ca.crt')
    await writeFile(ca, server.serving.pki.clusterCa.bundlePem)
    const from = url.startsWith('/') ? `https://127.0.0.1:${server.port}${url}` : url
    const source = ['--from', from, '--certificate-authority', ca, '--out', scratch]
    const { code, stderr } = await runInProcess(['issuer', 'publish', ...source])
    expect([code, stderr]).toEqual([1, expect.stringContaining(hint)])
    expect(stderr).toContain(from)
  })

  test('a URL with nothing below it is told so', async () => {
    const elsewhere = await startTestIssuer()
    const ca = join(scratch, 'ca.crt')
    await writeFile(ca, elsewhere.caPem ?? '')
    const from = `${elsewhere.issuer}/nothing`
    const source = ['--from', from, '--certificate-authority', ca, '--out', scratch]
    const { code, stderr } = await runInProcess(['issuer', 'publish', ...source])
    await elsewhere.stop()
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${from} has no documents of an issuer`),
    ])
  })

  test('what is no issuer is not published', async () => {
    const out = join(scratch, 'none')
    const from = `https://127.0.0.1:${server.port}/api`
    const ca = join(scratch, 'ca.crt')
    await writeFile(ca, server.serving.pki.clusterCa.bundlePem)
    const source = ['--from', from, '--certificate-authority', ca]
    const { code } = await runInProcess(['issuer', 'publish', '--out', out, ...source])
    expect(code).toBe(1)
    await expect(stat(out)).rejects.toThrow('ENOENT')
  })

  test('--watch keeps the files current [ISS-G8]', async () => {
    const ending = new AbortController()
    const running = runInProcess(
      [
        'issuer',
        'publish',
        '--out',
        scratch,
        '--watch',
        '--interval',
        '1s',
        '--data-dir',
        server.dataDirectory,
      ],
      { drain: ending.signal },
    )
    const kids = async () =>
      (JSON.parse(await readFile(join(scratch, jwks), 'utf8')) as { keys: Key[] }).keys.length
    await eventually('the first file', async () => (await kids()) === 1)
    await run(server, 'rotate')
    await eventually('the next key', async () => (await kids()) === 2)
    ending.abort()
    expect((await running).code).toBe(0)
  })

  test('serve has the two documents and nothing else [ISS-G9]', async () => {
    const ending = new AbortController()
    let url = ''
    const running = runInProcess(
      ['issuer', 'serve', '--port', '0', '--output', 'json', '--data-dir', server.dataDirectory],
      {
        drain: ending.signal,
        onStdout: (text) => {
          url = (JSON.parse(text) as { url: string }).url
        },
      },
    )
    await eventually('a listener', () => url !== '')
    const admin = await server.admin()
    for (const path of [discovery, jwks, `${jwks}/`]) {
      const answer = await fetch(`${url}/${path}`)
      expect(await answer.text()).toBe((await admin.get(`/${path}`)).text)
      expect(answer.headers.get('cache-control')).toBe('public, max-age=3600')
      const headers = { 'if-none-match': answer.headers.get('etag') ?? '' }
      expect((await fetch(`${url}/${path}`, { headers })).status).toBe(304)
      const weak = { 'if-none-match': `"other", W/${headers['if-none-match']}` }
      expect((await fetch(`${url}/${path}`, { headers: weak })).status).toBe(304)
      expect((await fetch(`${url}/${path}`, { method: 'HEAD' })).status).toBe(200)
      expect((await fetch(`${url}/${path}`, { method: 'POST', body: 'x' })).status).toBe(405)
    }
    for (const path of ['', 'api', 'version', `${jwks}/x`, '.well-known'])
      expect((await fetch(`${url}/${path}`)).status).toBe(404)
    ending.abort()
    expect((await running).code).toBe(0)
  })

  test('serve shows the certificate that its files hold, and a new one without a restart [ISS-G9]', async () => {
    const [cert, key] = [join(scratch, 'tls.crt'), join(scratch, 'tls.key')]
    const issuer = await labCertificate({ subject: named('ca'), ca: true })
    const write = async (name: string): Promise<string> => {
      const notAfter = Date.now() + 86_400_000
      const made = await labCertificate({ subject: named(name), issuer, notAfter })
      await writeFile(key, made.key.export({ type: 'pkcs8', format: 'pem' }))
      await writeFile(cert, made.certificate.toString())
      return made.certificate.fingerprint256
    }
    const first = await write('one')
    const ending = new AbortController()
    let url = ''
    const tls = ['--tls-cert-file', cert, '--tls-private-key-file', key]
    const running = runInProcess(
      [
        'issuer',
        'serve',
        '--port',
        '0',
        '--output',
        'json',
        ...tls,
        '--data-dir',
        server.dataDirectory,
      ],
      {
        drain: ending.signal,
        onStdout: (text) => {
          url = (JSON.parse(text) as { url: string }).url
        },
      },
    )
    await eventually('a listener', () => url !== '')
    expect(await certificateAt(url)).toBe(first)
    const second = await write('two')
    await eventually('the new certificate', async () => (await certificateAt(url)) === second)
    ending.abort()
    expect((await running).code).toBe(0)
  })

  test('serve refuses a key of another certificate by name', async () => {
    const [cert, key] = [join(scratch, 'tls.crt'), join(scratch, 'tls.key')]
    const issuer = await labCertificate({ subject: named('ca'), ca: true })
    await writeFile(cert, issuer.certificate.toString())
    await writeFile(
      key,
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
        type: 'pkcs8',
        format: 'pem',
      }),
    )
    const tls = ['--tls-cert-file', cert, '--tls-private-key-file', key]
    const { code, stderr } = await run(server, 'serve', '--port', '0', ...tls)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${key} is not the key of the certificate`),
    ])
  })
})
