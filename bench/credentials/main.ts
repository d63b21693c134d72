import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'
import { startChild } from '../child.ts'
import { contestants } from './contestants.ts'

/** Requests with the cached credential of an exec plugin, ours beside the official client's. */

const run = promisify(execFile)
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const node = async (args: readonly string[]): Promise<Record<string, number>> => {
  const { stdout } = await run(process.execPath, [...args])
  return JSON.parse(stdout) as Record<string, number>
}
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const short = process.argv.includes('--short')
const rounds = short ? 1 : 3
const seconds = short ? '1' : '3'
const directory = await mkdtemp(join(tmpdir(), 'bench-credentials-'))

async function writeFiles(): Promise<{ readonly server: string; readonly caPem: string }> {
  const now = Date.now()
  const lifetimeMs = 3_600_000
  const key = await generateEcKey()
  const { certificate, certPem } = await issueAuthorityCertificate({
    commonName: 'ca',
    key,
    now,
    lifetimeMs,
  })
  const ca = { name: 'ca', certificate, bundlePem: certPem, key }
  const made = await issueKeyAndCertificate({
    ca,
    subject: { commonName: 'server' },
    usages: ['server auth'],
    sans: ['127.0.0.1'],
    now,
    lifetimeMs,
  })
  await writeFile(join(directory, 'server.key'), privateKeyPem(made.key).reveal(), { mode: 0o600 })
  await writeFile(join(directory, 'server.crt'), made.certPem)
  const expirationTimestamp = new Date(now + lifetimeMs).toISOString()
  const answer = {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: 'bench-token', expirationTimestamp },
  }
  await writeFile(join(directory, 'plugin.mjs'), `console.log('${JSON.stringify(answer)}')`)
  const server = await startChild(process.execPath, [
    here('server.js'),
    join(directory, 'server.key'),
    join(directory, 'server.crt'),
    'bench-token',
  ])
  stops.push(() => server.stop())
  return { server: `https://127.0.0.1:${server.firstLine}`, caPem: certPem }
}

async function writeKubeconfig(server: string, caPem: string): Promise<string> {
  const path = join(directory, 'kubeconfig')
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: [join(directory, 'plugin.mjs')],
    interactiveMode: 'Never',
  }
  const cluster = { server, 'certificate-authority-data': Buffer.from(caPem).toString('base64') }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { exec } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  await writeFile(path, JSON.stringify(config), { mode: 0o600 })
  return path
}

async function measureLoad(path: string): Promise<void> {
  console.log(
    '| client | in flight | requests/s | per CPU second | CPU each, us | p50 ms | p99 ms |',
  )
  console.log('|---|---|---|---|---|---|---|')
  for (const concurrency of ['1', '64']) {
    const results = new Map<string, Record<string, number>[]>()
    for (let round = 0; round < rounds; round++)
      for (const name of Object.keys(contestants)) {
        const result = await node([here('load.js'), name, path, concurrency, seconds])
        results.set(name, [...(results.get(name) ?? []), result])
      }
    for (const [name, all] of results) {
      const of = (field: string): string => {
        const value = median(all.map((each) => each[field] ?? Number.NaN))
        return value >= 100 ? String(Math.round(value)) : value.toFixed(1)
      }
      const fields = ['perSecond', 'perCpuSecond', 'cpuMicros', 'p50', 'p99'].map(of)
      console.log(`| ${[name, concurrency, ...fields].join(' | ')} |`)
    }
  }
}

async function measureImports(): Promise<void> {
  const modules: Record<string, string[]> = {
    'bare Node': [],
    'sallyport/credentials': [new URL('../../src/credentials/index.js', import.meta.url).href],
    'sallyport/client': [new URL('../../src/client/index.js', import.meta.url).href],
    '@kubernetes/client-node': ['@kubernetes/client-node'],
  }
  console.log('\n| import | ms | MiB in all |\n|---|---|---|')
  for (const [name, args] of Object.entries(modules)) {
    const all: Record<string, number>[] = []
    for (let round = 0; round < rounds + 2; round++)
      all.push(await node([here('import-cost.js'), ...args]))
    const of = (field: string): string => median(all.map((each) => each[field] ?? 0)).toFixed(1)
    console.log(`| ${name} | ${of('ms')} | ${of('mib')} |`)
  }
}

const stops: (() => Promise<void>)[] = []
try {
  const { server, caPem } = await writeFiles()
  await measureLoad(await writeKubeconfig(server, caPem))
  await measureImports()
} finally {
  for (const stop of stops) await stop()
  await rm(directory, { recursive: true, force: true })
}
