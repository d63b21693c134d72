import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Contestant, startPeer } from '../api/contestant.ts'
import { startChild } from '../child.ts'
import { freePort } from '../free-port.ts'
import { findPeer } from '../peers.ts'
import { command, type Sallyport, tokenKubeconfig } from '../sallyport.ts'

/** A server of reviews or documents under measurement. */
export type Measured = Pick<Contestant, 'kubeconfig' | 'pids' | 'stop'>

/** A kube-apiserver that signs with our key, so that both verify the same kind of signature. */
export function startPeerWithOurKey(directory: string, ours: Sallyport): Promise<Measured> {
  const key = join(directoryOf(ours), 'data', 'pki', 'sa.key')
  return startPeer(directory, [
    `--service-account-signing-key-file=${key}`,
    `--service-account-key-file=${key}`,
  ])
}

const directoryOf = ({ kubeconfig }: Sallyport): string => join(kubeconfig, '..')

/** `sallyport issuer serve` with the documents and the certificate of a server. */
export async function startDocumentServer(ours: Sallyport): Promise<Measured> {
  const data = join(directoryOf(ours), 'data')
  const what = [command, 'issuer', 'serve', '--data-dir', data, '--port', '0', '--output', 'json']
  const certificate = ['--tls-cert-file', join(data, 'pki', 'apiserver.crt')]
  const key = ['--tls-private-key-file', join(data, 'pki', 'apiserver.key')]
  const child = await startChild(process.execPath, [...what, ...certificate, ...key])
  const { url } = JSON.parse(child.firstLine) as { url: string }
  const kubeconfig = join(data, 'listener.kubeconfig')
  await writeFile(kubeconfig, tokenKubeconfig(url, ours.caPem))
  return { kubeconfig, pids: [child.pid], stop: () => child.stop() }
}

const nginxConfig = (port: number, pki: string, directory: string): string => `
daemon off;
user ${userInfo().username};
worker_processes 1;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 100000000;
  open_file_cache max=16;
  client_body_temp_path ${directory}; proxy_temp_path ${directory}; fastcgi_temp_path ${directory};
  uwsgi_temp_path ${directory}; scgi_temp_path ${directory};
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${pki}/apiserver.crt;
    ssl_certificate_key ${pki}/apiserver.key;
    root ${directory}/www;
    add_header Cache-Control "public, max-age=3600";
    location /.well-known/ { default_type application/json; }
    location /openid/ { default_type application/jwk-set+json; }
  }
}
`

/** nginx with the same bytes, types and certificate; undefined where there is none. */
export async function startNginx(
  directory: string,
  ours: Sallyport,
  documents: ReadonlyMap<string, Buffer>,
): Promise<Measured | undefined> {
  const peer = findPeer('nginx')
  if ('missing' in peer) {
    console.error(peer.missing)
    return undefined
  }
  for (const [path, body] of documents) {
    const file = join(directory, 'www', path)
    await mkdir(join(file, '..'), { recursive: true })
    await writeFile(file, body)
  }
  const port = await freePort()
  const config = join(directory, 'nginx.conf')
  await writeFile(config, nginxConfig(port, join(directoryOf(ours), 'data', 'pki'), directory))
  const child = spawn(peer.path, ['-c', config, '-p', directory], { stdio: 'ignore' })
  const gone = once(child, 'exit')
  await reachable(port)
  const workers = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  const kubeconfig = join(directory, 'kubeconfig')
  await writeFile(kubeconfig, tokenKubeconfig(`https://127.0.0.1:${port}`, ours.caPem))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await gone
  }
  return { kubeconfig, pids: [child.pid ?? 0, ...workers.trim().split(' ').map(Number)], stop }
}

/** Resolves once somebody listens. */
async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const socket = createConnection(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await delay(50)
  }
  throw new Error('nginx does not listen')
}
