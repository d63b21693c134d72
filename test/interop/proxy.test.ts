import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { headerPairs } from '../../src/http/index.ts'
import type { SeenRequest } from '../../src/local-proxy/fake-api-server.suite.ts'
import { type LabProxy, ProxyLab, websocketHeaders } from '../../src/local-proxy/proxy-lab.suite.ts'
import { kubectlAt } from '../support/kubectl.ts'
import { findKubectl, pathOrReason } from '../support/peers.ts'
import { runSallyport, startSallyport } from '../support/sallyport-process.ts'

const kubectlPath = pathOrReason(findKubectl('1.36'))

/** What a client and the API server saw of one request. */
interface Seen {
  readonly status: number
  readonly location: string | undefined
  readonly body: string
  /** Absent if the API server saw nothing. */
  readonly forwarded: Omit<SeenRequest, 'rawHeaders'> | undefined
  readonly headers: Readonly<Record<string, string>>
}

let lab: ProxyLab
let directory: string
let kubeconfig: string
const children: ChildProcess[] = []

beforeAll(async () => {
  lab = await ProxyLab.open()
  directory = await mkdtemp(join(tmpdir(), 'proxy-interop-'))
  await mkdir(join(directory, 'www', 'sub'), { recursive: true })
  await writeFile(join(directory, 'www', 'a.txt'), 'hello')
  await writeFile(join(directory, 'www', 'sub', 'index.html'), '<p>sub')
  await writeFile(join(directory, 'secret'), 'secret')
  await symlink(join(directory, 'secret'), join(directory, 'www', 'out'))
  kubeconfig = join(directory, 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigText(''))
  await writeFile(join(directory, 'with-path'), kubeconfigText('/clusters/c1'))
})
afterAll(async () => {
  for (const child of children) child.kill()
  await lab?.close()
  await rm(directory, { recursive: true, force: true })
})

const kubeconfigText = (path: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'lab',
    clusters: [
      {
        name: 'lab',
        cluster: {
          server: lab.server + path,
          'certificate-authority-data': Buffer.from(lab.caPem).toString('base64'),
        },
      },
    ],
    users: [{ name: 'jane', user: { token: 'janes-token' } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'jane' } }],
  })

/** Starts `kubectl proxy` and returns its first line and its port. */
async function kubectlProxy(...flags: readonly string[]): Promise<{ line: string; port: number }> {
  const file = flags.includes('--with-path') ? join(directory, 'with-path') : kubeconfig
  const own = flags.filter((flag) => flag !== '--with-path')
  const child = spawn(kubectlPath ?? '', ['--kubeconfig', file, 'proxy', '--port=0', ...own])
  children.push(child)
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { line, port: Number(line.split(':').at(-1)) }
}

const localHop = new Set(['user-agent', 'accept-encoding', 'host', 'connection', 'date'])

async function seenThrough(port: number, request: string): Promise<Seen> {
  lab.api.seen.length = 0
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1').on('error', () => {})
  socket.write(request)
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    // An upgraded connection stays open; its head is all that is compared.
    if (text.startsWith('HTTP/1.1 101') && text.includes('\r\n\r\n')) break
  }
  socket.destroy()
  const [request0] = lab.api.seen
  const headers = [...headerPairs(request0?.rawHeaders ?? [])]
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !localHop.has(name))
  return {
    status: Number(text.split(' ')[1]),
    location: /^location: (.*)$/im.exec(text)?.[1]?.trim(),
    body: text.slice(text.indexOf('\r\n\r\n') + 4),
    forwarded: request0 && { method: request0.method, url: request0.url, body: request0.body },
    headers: Object.fromEntries(headers.sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

const request = (line: string, ...headers: readonly string[]): string => {
  const all = headers.some((header) => /^host:/i.test(header))
    ? headers
    : ['Host: localhost:8001', ...headers]
  const close = headers.some((header) => /^connection:/i.test(header)) ? [] : ['Connection: close']
  return `${[`${line} HTTP/1.1`, ...all, ...close].join('\r\n')}\r\n\r\n`
}

const pod = '/api/v1/namespaces/a/pods/b'

describe.skipIf(!kubectlPath)('[CRED-P1, CRED-P2, CRED-P3] kubectl proxy and ours', () => {
  let theirs: number
  let firstLine: string
  let ours: LabProxy

  beforeAll(async () => {
    const started = await kubectlProxy(`--www=${join(directory, 'www')}`)
    firstLine = started.line
    theirs = started.port
    ours = await lab.proxy({ www: { directory: join(directory, 'www'), prefix: '/static/' } })
  })

  test('say the same first line, but for the port', () => {
    expect(firstLine.replace(/\d+$/, 'PORT')).toBe(
      `Starting to serve on ${ours.proxy.address}`.replace(/\d+$/, 'PORT'),
    )
  })

  test.each([
    ['the root', request('GET /')],
    ['a list with a query', request('GET /api/v1/pods?limit=5&continue=a%2Fb')],
    ['HEAD', request('HEAD /api/v1/pods')],
    ['OPTIONS', request('OPTIONS /api/v1/pods')],
    ['DELETE', request('DELETE /api/v1/pods/a')],
    ['POST without a body', request('POST /api/v1/pods')],
    ['POST with a body', `${request('POST /x', 'Content-Length: 3')}abc`],
    ['POST in chunks', `${request('POST /x', 'Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`],
    ['own headers', request('GET /x', 'X-Own: 1', 'Accept: a/b')],
    ['a hop before', request('GET /x', 'X-Forwarded-For: 10.0.0.1')],
    ['a header of the connection', request('GET /x', 'Connection: close, X-Hop', 'X-Hop: 1')],
    ['exec', request(`GET ${pod}/exec?command=sh`)],
    ['attach', request(`POST ${pod}/attach`)],
    ['encoded exec', request(`GET ${pod}/%65xec`)],
    ['logs', request(`GET ${pod}/log?follow=true`)],
    ['a foreign host', request('GET /x', 'Host: evil.com')],
    ['a host below ours', request('GET /x', 'Host: localhost.evil.com')],
    ['a host with a dot', request('GET /x', 'Host: localhost.')],
    ['127.0.0.1', request('GET /x', 'Host: 127.0.0.1:1')],
    ['[::1]', request('GET /x', 'Host: [::1]')],
    ['two hosts', 'GET /x HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n'],
    ['no host', 'GET /x HTTP/1.1\r\n\r\n'],
    ['two slashes', request('GET //api/v1')],
    ['dots', request('GET /api/../x?q=1')],
    ['a file', request('GET /static/a.txt')],
    ['a part of a file', request('GET /static/a.txt', 'Range: bytes=1-3')],
    ['a file with a slash', request('GET /static/a.txt/')],
    ['a directory', request('GET /static/sub')],
    ['its index', request('GET /static/sub/')],
    ['its index by name', request('GET /static/sub/index.html')],
    ['the prefix without a slash', request('GET /static')],
    ['no file', request('GET /static/none')],
    ['a file above', request('GET /static/%2e%2e/secret')],
    ['a WebSocket', request('GET /ws?a=1&a=2', ...websocketHeaders)],
    ['SPDY', request('POST /x?b', 'Connection: Upgrade', 'Upgrade: SPDY/3.1', 'Content-Length: 0')],
  ])('do the same with %s', async (_name, text) => {
    const kubectl = await seenThrough(theirs, text)
    const sallyport = await seenThrough(ours.port, text)
    expect(sallyport.status).toBe(kubectl.status)
    expect(sallyport.forwarded).toEqual(kubectl.forwarded)
    expect(sallyport.location).toBe(kubectl.location)
    expect(sallyport.headers).toEqual(kubectl.headers)
    expect(plainBody(sallyport)).toBe(plainBody(kubectl))
  })

  /** Each row: what kubectl answers, what ours answers, and a request of which the document tells why. */
  test.each([
    [200, 400, 'an absolute target', request('GET http://localhost/x')],
    [200, 400, 'encoded dot segments', request('GET /api/%2e%2e/x')],
    [200, 400, 'an encoded slash', request('GET /api/a%2Fb')],
    [200, 404, 'a proxy under watch', request(`GET ${pod.replace('/v1/', '/v1/watch/')}/proxy/`)],
    [200, 405, 'TRACE', request('TRACE /x')],
    [200, 400, 'OPTIONS *', request('OPTIONS *')],
    [404, 400, 'CONNECT', request('CONNECT a:1')],
    [200, 403, 'portforward', request(`GET ${pod}/portforward`)],
    [200, 403, 'a foreign origin', request('POST /x', 'Origin: https://evil.com')],
    [200, 403, 'a cross-site request', request('GET /x', 'Sec-Fetch-Site: cross-site')],
    [
      101,
      403,
      "a foreign page's WebSocket",
      request('GET /ws', ...websocketHeaders, 'Origin: http://evil'),
    ],
    [101, 400, 'an unknown upgrade', request('GET /x', 'Connection: Upgrade', 'Upgrade: foo')],
    [
      101,
      400,
      'a WebSocket without a key',
      request('GET /x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'),
    ],
    [403, 200, '[::1] with a port', request('GET /x', 'Host: [::1]:8001')],
    [403, 200, 'a host in capitals', request('GET /x', 'Host: LOCALHOST')],
    [403, 400, 'an empty host', request('GET /x', 'Host: ')],
    [403, 200, "an add-on's own address", request('GET /x', 'Host: a--b.localhost')],
    [200, 403, 'files for a foreign host', request('GET /static/a.txt', 'Host: evil.com')],
    [200, 404, 'a link that leads out', request('GET /static/out')],
    [200, 405, 'a file by POST', request('POST /static/a.txt')],
    [500, 200, 'Connection: Upgrade alone', request('GET /x', 'Connection: close, Upgrade')],
  ])('differ on purpose, %i and %i, with %s', async (kubectl, sallyport, _name, text) => {
    expect((await seenThrough(theirs, text)).status).toBe(kubectl)
    expect((await seenThrough(ours.port, text)).status).toBe(sallyport)
  })

  test.each([
    ['Authorization: Bearer evil', 'authorization', 403],
    ['Impersonate-User: evil', 'impersonate-user', 403],
    ['X-Remote-User: evil', 'x-remote-user', 200],
  ])('[CRED-P6] differ in %s, which only kubectl lets through', async (header, name, status) => {
    const text = request('GET /x', header)
    expect((await seenThrough(theirs, text)).headers[name]).toContain('evil')
    const before = lab.api.seen.length
    const seen = await seenThrough(ours.port, text)
    expect(seen.status).toBe(status)
    expect(JSON.stringify(lab.api.seen.slice(before))).not.toContain('evil')
  })

  test('[SEC-R1802] differ in a cookie that the server has not set, which only kubectl lets through', async () => {
    const text = request('GET /x', 'Cookie: a=b')
    expect((await seenThrough(theirs, text)).headers['cookie']).toBe('a=b')
    expect((await seenThrough(ours.port, text)).headers['cookie']).toBeUndefined()
  })

  test.each([
    [['--api-prefix=/custom'], { apiPrefix: '/custom' }],
    [['--api-prefix=/api'], { apiPrefix: '/api' }],
    [['--api-prefix=/k8s-api/'], { apiPrefix: '/k8s-api/' }],
  ])('do the same under %s', async (flags, options) => {
    const { port } = await kubectlProxy(...flags)
    const own = await lab.proxy(options)
    for (const path of [
      '/',
      '/custom',
      '/custom/api/v1?x=1',
      '/api',
      '/api/v1',
      '/k8s-api/v1/pods',
    ]) {
      const kubectl = await seenThrough(port, request(`GET ${path}`))
      const { status, forwarded } = await seenThrough(own.port, request(`GET ${path}`))
      expect({ path, status, forwarded }).toEqual({
        path,
        status: kubectl.status,
        forwarded: kubectl.forwarded,
      })
    }
  })

  test.each([
    [[], false],
    [['--append-server-path'], true],
  ])('do the same with a path in the server and %s', async (flags, appendServerPath) => {
    const { port } = await kubectlProxy('--with-path', ...flags)
    const own = await lab.proxy({ appendServerPath }, '/clusters/c1')
    for (const text of [request('GET /api?x'), request('GET /ws?y', ...websocketHeaders)]) {
      const kubectl = await seenThrough(port, text)
      expect((await seenThrough(own.port, text)).forwarded).toEqual(kubectl.forwarded)
    }
  })

  test('do the same with filters', async () => {
    const filter = {
      acceptPaths: '^/api,^/version',
      rejectPaths: 'secrets,^/api/.*/nodes',
      rejectMethods: 'POST,PUT',
      acceptHosts: String.raw`^dev\.lan$,local`,
    }
    const { port } = await kubectlProxy(
      `--accept-paths=${filter.acceptPaths}`,
      `--reject-paths=${filter.rejectPaths}`,
      `--reject-methods=${filter.rejectMethods}`,
      `--accept-hosts=${filter.acceptHosts}`,
    )
    const own = await lab.proxy({ filter })
    for (const path of ['/api', '/version', '/other', '/api/v1/secrets', '/api/v1/nodes', pod])
      for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
        for (const host of ['localhost', 'dev.lan:8001', '127.0.0.1', 'my-local-box']) {
          const text = request(`${method} ${path}`, `Host: ${host}`)
          const { status } = await seenThrough(port, text)
          expect([method, path, host, (await seenThrough(own.port, text)).status]).toEqual([
            method,
            path,
            host,
            status,
          ])
        }
  })
})

/** The body without what each proxy says in words of its own: chunks, its own headers, refusals, redirects. */
function plainBody({ status, body }: Seen): string {
  if (status === 307 || status === 400) return ''
  if (status === 403) return body.slice(0, 'Forbidden'.length)
  return body.replace(/"rawHeaders":\[.*?\]/s, '').replaceAll(/^[0-9a-f]+\r$/gm, '')
}

describe.skipIf(!kubectlPath)('stock kubectl through our proxy', () => {
  test('[CRED-P1] gets, creates and watches', async () => {
    const server = await startSallyport()
    const env = { KUBECONFIG: server.kubeconfig }
    const stop = new AbortController()
    let ended: ReturnType<typeof runSallyport> | undefined
    const line = await new Promise<string>((resolve, reject) => {
      ended = runSallyport(['proxy', '--port', '0'], {
        env,
        onStdout: (text, child) => {
          stop.signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true })
          resolve(text)
        },
      })
      ended.catch(reject)
    })
    const port = Number(line.trim().split(':').at(-1))
    const through = join(directory, 'through')
    await writeFile(
      through,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'p',
        clusters: [{ name: 'p', cluster: { server: `http://localhost:${port}` } }],
        contexts: [{ name: 'p', context: { cluster: 'p', user: '' } }],
      }),
    )
    const kubectl = kubectlAt(kubectlPath ?? '', through, join(directory, 'cache'))
    expect(await kubectl('auth whoami')).toContain('kubernetes-admin')
    await kubectl('create configmap a --from-literal=b=c')
    expect(await kubectl('get configmaps --watch --request-timeout=2s -o name')).toContain(
      'configmap/a',
    )
    expect((await kubectl.outcome('exec p -- sh')).stderr).toMatch(/not found|orbidden/)
    stop.abort()
    expect((await ended)?.code).toBe(0)
    await server.stop()
  })
})
