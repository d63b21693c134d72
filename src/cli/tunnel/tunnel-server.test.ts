import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { labAuthority, labMaterial } from '../../http/tls-lab.suite.ts'
import type { Io } from '../io.ts'
import { type ExitCode, runCommand } from '../run-command.ts'
import { tunnelServerCommand } from './commands.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-server-command-'))
  const ca = await labAuthority('ca of the test')
  const { certPem, keyPem } = await labMaterial(ca)
  await writeFile(join(directory, 'ca.crt'), ca.bundlePem)
  await writeFile(join(directory, 'server.crt'), certPem)
  await writeFile(join(directory, 'server.key'), keyPem.reveal())
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Runs the command; `said` is called with everything on the standard output so far. */
async function run(argv: readonly string[], said: (text: string) => void, io: Partial<Io> = {}) {
  let stdout = ''
  let stderr = ''
  const never = new AbortController().signal
  const code: ExitCode = await runCommand([tunnelServerCommand], ['tunnel', 'server', ...argv], {
    env: {},
    interactive: false,
    columns: 100,
    isRoot: false,
    homeDirectory: directory,
    stdout: (text) => {
      stdout += text
      said(stdout)
    },
    stderr: (text) => {
      stderr += text
    },
    drain: never,
    kill: never,
    ...io,
  })
  return { code, stdout, stderr }
}

const nothing = (): void => {}

const working = (): string[] => [
  `--uds-name=${directory}/front.sock`,
  '--server-port=0',
  '--agent-port=0',
  '--agent-bind-address=127.0.0.1',
  '--health-port=0',
  '--health-bind-address=127.0.0.1',
  '--admin-port=0',
  `--cluster-cert=${directory}/server.crt`,
  `--cluster-key=${directory}/server.key`,
  `--cluster-ca-cert=${directory}/ca.crt`,
]

test('[TUN-F3] what is wrong is said at once and in full, before anything starts', async () => {
  const argv = ['--uds-name=/s', '--cluster-cert=/no/such.crt', '--admin-port=80']
  const { code, stdout, stderr } = await run(argv, nothing)
  expect([code, stdout]).toEqual([2, ''])
  for (const said of ['--server-port must be 0', '/no/such.crt', '--admin-port', '--cluster-key']) {
    expect(stderr).toContain(said)
  }
})

test('it says what listens where, and ends when asked', async () => {
  const drain = new AbortController()
  const { code, stdout } = await run(working(), () => drain.abort(), { drain: drain.signal })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^agents +127\.0\.0\.1:\d+ +\(TLS, client certificates\)$/m)
  expect(stdout).toMatch(/^front end +\S+front\.sock +\(gRPC\)$/m)
  expect(stdout).toMatch(/^health +127\.0\.0\.1:\d+ +\(\/healthz \/readyz \/metrics\)$/m)
})

test('it says the same as JSON', async () => {
  const drain = new AbortController()
  const argv = [...working(), '--server-id=me', '--output=json']
  const { code, stdout } = await run(argv, () => drain.abort(), { drain: drain.signal })
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ serverId: 'me', frontEnd: `${directory}/front.sock` })
})

test('a port in use and a cluster that is nowhere are told with what to do', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const address = taken.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const inUse = await run([...working(), `--agent-port=${port}`], nothing)
  taken.close()
  expect(inUse.code).toBe(port > 49_151 ? 2 : 1)
  expect(inUse.stderr).toMatch(port > 49_151 ? /--agent-port must be/ : /the port is in use/)
  const leases = await run([...working(), '--enable-lease-controller'], nothing)
  expect([leases.code, leases.stderr]).toEqual([1, expect.stringContaining('kubeconfig')])
})

test('[TUN-R20] a gate without anything behind it is told', async () => {
  const drain = new AbortController()
  const argv = [...working(), '--feature-gates=NodeToMasterTraffic=true']
  const { code, stderr } = await run(argv, () => drain.abort(), { drain: drain.signal })
  expect([code, stderr]).toEqual([0, expect.stringContaining('--allowed-destination is missing')])
})

test('help shows examples', async () => {
  const { code, stdout } = await run(['--help'], nothing)
  expect(code).toBe(0)
  expect(stdout).toContain('Examples')
  expect(stdout).toContain('--allowed-destination HOST:PORT')
})
