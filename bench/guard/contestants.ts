import { spawn } from 'node:child_process'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createAddonTokenMinter, ServingKeySigner } from '../../src/addon/token/index.ts'
import { silentLogger, systemClock } from '../../src/core/index.ts'
import { renderJwks, signCompactJws, signingKey } from '../../src/jose/index.ts'
import { openServingCertificate } from '../../src/pki/index.ts'
import { type Child, startChild } from '../child.ts'
import { freePort } from '../free-port.ts'
import { findPeer } from '../peers.ts'
import { token as adminToken, command, type Sallyport } from '../sallyport.ts'

/** A proxy under measurement. */
export interface Contestant {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly token?: string
}

/** What all contestants stand on: where they are started, what is behind them, and whom they ask. */
export interface Ground {
  readonly directory: string
  readonly backendPort: number
  readonly sallyport: Sallyport
  readonly nodeFlags: readonly string[]
  readonly stops: (() => Promise<unknown>)[]
}

async function started(ground: Ground, program: string, args: readonly string[]): Promise<Child> {
  const child = await startChild(program, args)
  ground.stops.push(() => child.stop())
  return child
}

/** `sallyport guard` with a token of the serving key; the access log is off, as the peers' is. */
export async function startGuard(ground: Ground): Promise<Contestant> {
  const { directory, backendPort, nodeFlags } = ground
  const pki = join(directory, 'data', 'pki')
  const flags = ['--listen-address', '127.0.0.1', '--listen-port', '0', '--health-port', '0']
  const what = [
    '--forward-port',
    String(backendPort),
    '--audience',
    'bench/app',
    '--access-log',
    'none',
  ]
  const child = await started(ground, process.execPath, [
    ...nodeFlags,
    command,
    'guard',
    ...flags,
    ...what,
    '--ca-file',
    join(pki, 'ca.crt'),
    '--output',
    'json',
  ])
  const { listening } = JSON.parse(child.firstLine) as { listening: string[] }
  const port = Number(listening[0]?.split(':').at(-1))
  const files = { certFile: join(pki, 'apiserver.crt'), keyFile: join(pki, 'apiserver.key') }
  const serving = await openServingCertificate({ ...files, clock: systemClock, log: silentLogger })
  const signer = new ServingKeySigner(serving)
  // The longest that a guard believes, since the load keeps one token for a whole round.
  const minter = createAddonTokenMinter({ signer, clock: systemClock, lifetimeSeconds: 300 })
  const token = await minter.mint({ user: 'admin', namespace: 'bench', service: 'app' })
  serving.close()
  return { name: 'sallyport guard', pid: child.pid, port, token }
}

/** The same way to the backend, without any check. */
export async function startBareProxy(ground: Ground): Promise<Contestant> {
  const program = fileURLToPath(new URL('./bare-proxy.js', import.meta.url))
  const child = await started(ground, process.execPath, [program, String(ground.backendPort)])
  const { listening } = JSON.parse(child.firstLine) as { listening: number }
  return { name: 'bare proxy', pid: child.pid, port: listening }
}

/** kube-rbac-proxy, which asks the API server about tokens and rights and keeps the answers. */
export async function startKubeRbacProxy(ground: Ground): Promise<Contestant | undefined> {
  const path = found('kube-rbac-proxy-0.19')
  if (path === undefined) return undefined
  const port = await freePort()
  const { pid } = await spawned(ground, port, path, [
    `--insecure-listen-address=127.0.0.1:${port}`,
    `--upstream=http://127.0.0.1:${ground.backendPort}/`,
    `--kubeconfig=${ground.sallyport.kubeconfig}`,
    '--auth-header-fields-enabled=true',
  ])
  return { name: 'kube-rbac-proxy', pid, port, token: adminToken }
}

/** oauth2-proxy, which verifies ES256 tokens of an issuer by its key set. */
export async function startOauth2Proxy(ground: Ground): Promise<Contestant | undefined> {
  const path = found('oauth2-proxy-7.15')
  if (path === undefined) return undefined
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = await serveKeys(ground, privateKey)
  const port = await freePort()
  const { pid } = await spawned(ground, port, path, [
    `--http-address=127.0.0.1:${port}`,
    `--upstream=http://127.0.0.1:${ground.backendPort}/`,
    '--provider=oidc',
    `--oidc-issuer-url=${issuer}`,
    '--skip-oidc-discovery=true',
    '--oidc-enabled-signing-alg=ES256',
    `--oidc-jwks-url=${issuer}/keys`,
    `--login-url=${issuer}/login`,
    `--redeem-url=${issuer}/redeem`,
    '--client-id=bench',
    '--client-secret=bench-bench-bench',
    '--cookie-secret=0123456789abcdef',
    '--email-domain=*',
    '--skip-jwt-bearer-tokens=true',
    '--request-logging=false',
    '--auth-logging=false',
    '--standard-logging=false',
  ])
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: issuer, aud: 'bench', sub: 'admin', email: 'admin@example.com' }
  const times = { iat: now, exp: now + 3600, email_verified: true }
  const key = signingKey(privateKey)
  const token = signCompactJws({ kid: key.kid }, JSON.stringify({ ...claims, ...times }), key)
  return { name: 'oauth2-proxy', pid, port, token }
}

async function serveKeys(ground: Ground, key: KeyObject): Promise<string> {
  const document = renderJwks([signingKey(key).publicKey])
  const server = createServer((_request, response) => response.end(document))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ground.stops.push(() => new Promise((resolve) => server.close(resolve)))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const nginxConfig = (directory: string, server: string): string => `
daemon off;
user ${userInfo().username};
master_process off;
pid ${directory}/nginx.pid;
error_log ${directory}/nginx-error.log;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path ${directory}; proxy_temp_path ${directory}; fastcgi_temp_path ${directory};
  uwsgi_temp_path ${directory}; scgi_temp_path ${directory};
  ${server}
}
`

/** Starts nginx with what `server` says for the port that it is given; nothing where there is no nginx. */
export async function startNginx(
  ground: Pick<Ground, 'directory' | 'stops'>,
  name: string,
  server: (port: number) => string,
): Promise<{ readonly pid: number; readonly port: number } | undefined> {
  const path = found('nginx')
  if (path === undefined) return undefined
  const port = await freePort()
  const config = join(ground.directory, `${name}.conf`)
  await writeFile(
    config,
    nginxConfig(ground.directory, server(port)).replace('nginx.pid', `${name}.pid`),
  )
  const { pid } = await spawned(ground, port, path, ['-c', config, '-p', ground.directory])
  return { pid, port }
}

/** nginx as a proxy that checks nothing. */
export async function startNginxProxy(ground: Ground): Promise<Contestant | undefined> {
  const server = (port: number): string => `
  upstream backend { server 127.0.0.1:${ground.backendPort}; keepalive 128; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }`
  const running = await startNginx(ground, 'proxy', server)
  return running && { name: 'nginx', ...running }
}

/** The backend of all: nginx that answers everything with 1 KB, or else node:http. */
export async function startBackend(ground: Ground): Promise<number> {
  const body = 'x'.repeat(1024)
  const server = (port: number): string => `
  server { listen 127.0.0.1:${port}; default_type text/plain; location / { return 200 "${body}"; } }`
  const running = await startNginx(ground, 'backend', server)
  if (running) return running.port
  const plain = createServer((_request, response) => response.end(body)).listen(0, '127.0.0.1')
  await once(plain, 'listening')
  ground.stops.push(() => new Promise((resolve) => plain.close(resolve)))
  return (plain.address() as AddressInfo).port
}

function found(name: string): string | undefined {
  const peer = findPeer(name)
  if ('path' in peer) return peer.path
  console.error(peer.missing)
  return undefined
}

/** Starts a program that says nothing, and waits until it listens. */
async function spawned(
  ground: Pick<Ground, 'stops'>,
  port: number,
  program: string,
  args: readonly string[],
): Promise<{ readonly pid: number; readonly port: number }> {
  const log: string[] = []
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => log.push(String(chunk)))
  const gone = once(child, 'close')
  ground.stops.push(() => (child.kill(), gone))
  for (let attempt = 0; attempt < 100 && child.exitCode === null; attempt++) {
    if (await listens(port)) return { pid: child.pid ?? 0, port }
    await delay(100)
  }
  throw new Error(`${program} does not listen:\n${log.join('').slice(-2000)}`)
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Resident memory of a process in MB. */
export async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024
}
