// The tunnel's data path alone: load -> server -> agent -> target, beside two bare TCP relays in the same run.
// Needs `tunnel-load` (interop/peers/build): node data-plane.js PATH-OF-TUNNEL-LOAD [rounds]
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CertificateAuthority,
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'
import { type Child, startChild } from '../child.ts'

const [load = 'tunnel-load', rounds = '1'] = process.argv.slice(2)
const end = new URL('data-plane-end.js', import.meta.url).pathname
const hour = 3600 * 1000

async function writeCertificates(directory: string): Promise<void> {
  const key = await generateEcKey()
  const order = { commonName: 'bench', key, now: Date.now(), lifetimeMs: hour }
  const { certificate, certPem } = await issueAuthorityCertificate(order)
  const ca: CertificateAuthority = { name: 'bench', certificate, bundlePem: certPem, key }
  writeFileSync(join(directory, 'ca.pem'), certPem)
  for (const [name, usage] of [
    ['server', 'server auth'],
    ['agent', 'client auth'],
  ] as const) {
    const made = await issueKeyAndCertificate({
      ca,
      subject: { commonName: name },
      usages: [usage],
      now: Date.now(),
      lifetimeMs: hour,
      sans: ['127.0.0.1'],
    })
    writeFileSync(join(directory, `${name}.pem`), made.certPem)
    writeFileSync(join(directory, `${name}.key`), privateKeyPem(made.key).reveal())
  }
}

interface Contestant {
  readonly name: string
  readonly port: string
  readonly children: readonly Child[]
}

const started: Child[] = []
async function start(program: string, ...args: string[]): Promise<Child> {
  const child = await startChild(program, args)
  started.push(child)
  return child
}

const node = (...args: string[]): Promise<Child> =>
  start(process.execPath, ...(process.env['NODE_FLAGS']?.split(' ') ?? []), end, ...args)

async function startLink(directory: string, target: string): Promise<Contestant> {
  const server = await node('server', directory, target)
  const [port = '', agentPort = ''] = server.firstLine.split(' ')
  const agent = await node('agent', directory, target, agentPort)
  return { name: 'link', port, children: [server, agent] }
}

async function startRelays(directory: string, target: string): Promise<Contestant> {
  const far = await node('relay', directory, target)
  const near = await node('relay', directory, `127.0.0.1:${far.firstLine}`)
  return { name: 'bare TCP relays', port: near.firstLine, children: [near, far] }
}

const only = process.env['ONLY']
const megabytes = (count: number): string => String(count * 1_000_000)
const scenarios: readonly (readonly string[])[] = [
  ['upload', '-bytes', megabytes(1_000), '-connections', '1'],
  ['download', '-bytes', megabytes(1_000), '-connections', '1'],
  ['upload', '-bytes', megabytes(1_000), '-connections', '50'],
  ['download', '-bytes', megabytes(1_000), '-connections', '50'],
  ['echo', '-count', '5000'],
  ['echo', '-count', '500', '-bulk', '1'],
  ['dials', '-count', '4000', '-connections', '16'],
]

const directory = mkdtempSync(join(tmpdir(), 'data-plane-'))
try {
  await writeCertificates(directory)
  const target = await start(load, 'target')
  const contestants = [
    await startLink(directory, target.firstLine),
    await startRelays(directory, target.firstLine),
  ]
  for (let round = 0; round < Number(rounds); round++)
    for (const scenario of scenarios.filter((words) => !only || words.join(' ').match(only)))
      for (const { name, port, children } of contestants) {
        const pids = children.map((child) => child.pid).join(',')
        const flags = ['-front', 'tcp', '-address', `127.0.0.1:${port}`, '-cpu-of', pids]
        const result = execFileSync(load, [...scenario, ...flags])
          .toString()
          .trim()
        console.log(`${name}: ${scenario.join(' ')}\n  ${result}`)
      }
} finally {
  for (const child of started.reverse()) await child.stop()
  rmSync(directory, { recursive: true })
}
