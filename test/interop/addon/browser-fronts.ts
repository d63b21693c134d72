import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { wellKnownKinds } from '../../../src/core/index.ts'
import { ProxyLab } from '../../../src/local-proxy/proxy-lab.suite.ts'
import { buildOnce } from '../../build-once.ts'
import { LoggedProcess } from '../../support/logged-process.ts'
import { findKubectl, pathOrReason } from '../../support/peers.ts'
import { outwardAddress, ServiceProxyLab } from '../../support/service-proxy-lab.ts'

export const kubectlPath = pathOrReason(findKubectl('1.36'))

/** In a Secret of kube-system; a page that can show it has read the API as its user. */
export const secretMarker = 'bWFya2Vy'
export const secretsPath = '/api/v1/namespaces/kube-system/secrets'

/** In whatever an add-on sends, so that it is known again. */
export const pageMarker = 'content of an add-on'

const script = `document.documentElement.setAttribute('data-ran', self.origin)`
const xhtml = 'xmlns="http://www.w3.org/1999/xhtml"'
const html = `<!doctype html><title>x</title><body>${pageMarker}<script>${script}</script>`

/** Content of every kind that a browser may show or run, by its path. */
export const contents: Readonly<Record<string, readonly [type: string | undefined, body: string]>> =
  {
    '/page.html': ['text/html', html],
    '/page': [undefined, html],
    '/page.txt': ['text/plain', html],
    '/page.unknown': ['application/x-unknown', html],
    '/page.xhtml': [
      'application/xhtml+xml',
      `<html ${xhtml}><body>${pageMarker}<script>${script}</script></body></html>`,
    ],
    '/page.xml': ['text/xml', `<x>${pageMarker}<script ${xhtml}>${script}</script></x>`],
    '/page.svg': [
      'image/svg+xml',
      `<svg xmlns="http://www.w3.org/2000/svg"><text>${pageMarker}</text><script>${script}</script></svg>`,
    ],
    '/page.js': ['text/javascript', `/* ${pageMarker} */ ${script}`],
    '/page.json': ['application/json', JSON.stringify(html)],
    '/worker.js': ['text/javascript', 'self.onfetch = () => {}'],
  }

/** An add-on that sends what it can, and remembers what it was sent. */
class HostileAddon {
  readonly cookies: string[] = []
  /** Set on every response. */
  setCookies: string[] = []

  readonly serve: RequestListener = (request, response) => {
    if (request.headers.upgrade !== undefined) {
      acceptSocket(request)
      return
    }
    const path = `/${(request.url ?? '').split('?', 1)[0]?.split('/').at(-1)}`
    this.cookies.push(request.headers.cookie ?? '')
    const [type, body] = contents[path] ?? ['text/html', html]
    response.writeHead(200, {
      ...(type !== undefined && { 'content-type': type }),
      ...(this.setCookies.length > 0 && { 'set-cookie': this.setCookies }),
      'service-worker-allowed': '/',
      ...(path === '/page.xhtml' && {
        'content-security-policy': 'sandbox allow-scripts allow-same-origin',
      }),
      'x-content-type-options': 'none',
    })
    response.end(body)
  }
}

function acceptSocket({ headers, socket }: IncomingMessage): void {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  const lines = ['Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${accept}`]
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
}

/** A way by which a browser reaches the API with the rights of an administrator. */
export interface Front {
  readonly name: string
  readonly base: string
  /** What a browser sends by itself, in place of a client certificate. */
  readonly headers: Readonly<Record<string, string>>
}

const configMaps = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}

/** One cluster with hostile add-ons, and every front before it. */
export class BrowserFronts {
  readonly lab: ServiceProxyLab
  /** In the namespace `evil`. */
  readonly evil = new HostileAddon()
  /** A neighbour of it. */
  readonly other = new HostileAddon()
  /** In `kube-system`, which the server trusts with its origin. */
  readonly trusted = new HostileAddon()
  readonly fronts: Front[] = []
  #directory = ''
  #bare: ProxyLab | undefined
  readonly #programs: LoggedProcess[] = []

  private constructor(lab: ServiceProxyLab) {
    this.lab = lab
  }

  static async open(): Promise<BrowserFronts> {
    const directory = await mkdtemp(join(tmpdir(), 'browser-fronts-'))
    const tokens = join(directory, 'tokens.csv')
    await writeFile(tokens, 'admin-token,admin,1,system:masters\n', { mode: 0o600 })
    const fronts = new BrowserFronts(await ServiceProxyLab.open(['--token-auth-file', tokens]))
    fronts.#directory = directory
    await fronts.#fill()
    await fronts.#start()
    return fronts
  }

  front(name: string): Front {
    const found = this.fronts.find((each) => each.name === name)
    if (!found) throw new Error(`there is no front ${name}`)
    return found
  }

  /** A server that adds nothing to what an add-on sends, before which a local proxy stands. */
  get bare(): ProxyLab {
    if (!this.#bare) throw new Error('not started')
    return this.#bare
  }

  /** Makes sure that there is a ConfigMap of this name. */
  async configMap(name: string): Promise<void> {
    if (!(await this.hasConfigMap(name)))
      await this.lab.create(configMaps, { metadata: { name, namespace: 'default' } })
  }

  /** Whether a ConfigMap of this name has been created. */
  async hasConfigMap(name: string): Promise<boolean> {
    const soon = AbortSignal.timeout(10_000)
    const { view } = this.lab.server.serving
    return (await view.get(configMaps, { namespace: 'default', name }, soon)) !== undefined
  }

  async close(): Promise<void> {
    for (const program of this.#programs) await program.stop('SIGKILL')
    await this.#bare?.close()
    await this.lab.close()
    await rm(this.#directory, { recursive: true, force: true })
  }

  async #fill(): Promise<void> {
    const { lab } = this
    await lab.create(wellKnownKinds.namespace, { metadata: { name: 'evil' } })
    await lab.create(wellKnownKinds.secret, {
      metadata: { name: 'marked', namespace: 'kube-system' },
      data: { value: secretMarker },
    })
    for (const [name, namespace, addon] of [
      ['web', 'evil', this.evil],
      ['other', 'evil', this.other],
      ['web', 'kube-system', this.trusted],
    ] as const)
      await lab.addon(name, await lab.backend(addon.serve), { namespace, portName: 'http' })
    const node = await lab.create(wellKnownKinds.node, { metadata: { name: 'node' } })
    const addresses = [{ type: 'InternalIP', address: outwardAddress }]
    const soon = AbortSignal.timeout(10_000)
    const { view } = lab.server.serving
    await view.write('update', { ...node, status: { addresses } }, { subresource: 'status' }, soon)
    this.nodeId = `http:node:${(await lab.backend(this.evil.serve)).port}`
  }

  /** By which the node is proxied, at a port where the hostile add-on listens. */
  nodeId = ''

  async #start(): Promise<void> {
    const { serving } = this.lab.server
    const www = join(this.#directory, 'www')
    await mkdir(www)
    await writeFile(join(www, 'own.html'), html)
    const main = join(await buildOnce(), 'cli', 'main.js')
    const flags = ['proxy', '--kubeconfig', serving.adminKubeconfig, '--port=0', `--www=${www}`]
    this.fronts.push(
      { name: 'API server', base: serving.url, headers: { authorization: 'Bearer admin-token' } },
      await this.#proxy('kubectl proxy', kubectlPath ?? '', flags),
      await this.#proxy('sallyport proxy', process.execPath, [main, ...flags]),
      await this.#proxy('sallyport proxy, unfiltered', process.execPath, [
        main,
        ...flags,
        '--disable-filter',
      ]),
    )
    this.#bare = await ProxyLab.open()
    this.#bare.api.answers.set(secretsPath, (_request, response) => response.end(secretMarker))
    const proxy = await this.#bare.proxy()
    const base = `http://localhost:${proxy.port}`
    this.fronts.push({ name: 'sallyport proxy, bare server', base, headers: {} })
  }

  async #proxy(name: string, program: string, args: readonly string[]): Promise<Front> {
    const proxy = new LoggedProcess(program, args)
    this.#programs.push(proxy)
    const line = await proxy.said(/serve on .*:\d+/)
    return { name, base: `http://localhost:${/:(\d+)\s*$/.exec(line)?.[1]}`, headers: {} }
  }
}
