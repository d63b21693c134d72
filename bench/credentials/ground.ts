import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'
import { startChild } from '../child.ts'

/** A server of one ConfigMap and a kubeconfig for it, whose user has an exec plugin. */
export interface Ground {
  readonly kubeconfig: string
  stop(): Promise<void>
}

const lifetimeMs = 3_600_000
const token = 'bench-token'
const version = 'client.authentication.k8s.io/v1'

/** Starts the server and writes all files into `directory`. */
export async function openGround(directory: string): Promise<Ground> {
  const at = (name: string): string => join(directory, name)
  const caPem = await writeCertificates(at)
  const server = await startChild(process.execPath, [
    fileURLToPath(new URL('server.js', import.meta.url)),
    at('server.key'),
    at('server.crt'),
    token,
  ])
  await writePlugin(at('plugin.mjs'))
  const kubeconfig = kubeconfigText(
    `https://127.0.0.1:${server.firstLine}`,
    caPem,
    at('plugin.mjs'),
  )
  await writeFile(at('kubeconfig'), kubeconfig, { mode: 0o600 })
  return { kubeconfig: at('kubeconfig'), stop: () => server.stop() }
}

async function writeCertificates(at: (name: string) => string): Promise<string> {
  const now = Date.now()
  const key = await generateEcKey()
  const about = { commonName: 'ca', key, now, lifetimeMs }
  const { certificate, certPem } = await issueAuthorityCertificate(about)
  const made = await issueKeyAndCertificate({
    ca: { name: 'ca', certificate, bundlePem: certPem, key },
    subject: { commonName: 'server' },
    usages: ['server auth'],
    sans: ['127.0.0.1'],
    now,
    lifetimeMs,
  })
  await writeFile(at('server.key'), privateKeyPem(made.key).reveal(), { mode: 0o600 })
  await writeFile(at('server.crt'), made.certPem)
  return certPem
}

async function writePlugin(path: string): Promise<void> {
  const expirationTimestamp = new Date(Date.now() + lifetimeMs).toISOString()
  const status = { token, expirationTimestamp }
  const answer = { apiVersion: version, kind: 'ExecCredential', status }
  await writeFile(path, `console.log('${JSON.stringify(answer)}')`)
}

function kubeconfigText(server: string, caPem: string, plugin: string): string {
  const exec = {
    apiVersion: version,
    command: process.execPath,
    args: [plugin],
    interactiveMode: 'Never',
  }
  const cluster = { server, 'certificate-authority-data': Buffer.from(caPem).toString('base64') }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { exec } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })
}
