import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Io } from '../io.ts'
import { type ExitCode, runCommand } from '../run-command.ts'
import { tunnelAgentCommand } from './commands.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-agent-command-'))
  await writeFile(join(directory, 'ca.crt'), '')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Runs the command; `said` is called with everything on the standard output so far. */
async function run(
  argv: readonly string[],
  said: (text: string) => void = () => {},
  io: Partial<Io> = {},
) {
  let stdout = ''
  let stderr = ''
  const never = new AbortController().signal
  const code: ExitCode = await runCommand([tunnelAgentCommand], ['tunnel', 'agent', ...argv], {
    env: {},
    interactive: true,
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

const ports = ['--health-server-port=0', '--admin-server-port=0', '--health-server-host=127.0.0.1']

test('what is wrong is said at once and in full, before anything starts', async () => {
  const { code, stdout, stderr } = await run(['--agent-cert=/no/such.crt', '--sync-interval=1h'])
  expect([code, stdout]).toEqual([2, ''])
  for (const said of ['--ca-cert is required', '--agent-key', '/no/such.crt', '--sync-interval']) {
    expect(stderr).toContain(said)
  }
})

test('it says where it is and what it does, and ends when asked', async () => {
  const drain = new AbortController()
  const argv = [`--ca-cert=${directory}/ca.crt`, '--agent-id=me', ...ports]
  const { code, stdout } = await run(argv, () => drain.abort(), { drain: drain.signal })
  expect(code).toBe(0)
  expect(stdout).toMatch(
    /^agent {6}me\nservers {4}127\.0\.0\.1:8091\nhealth {5}127\.0\.0\.1:\d+ .*\nadmin {6}127\.0\.0\.1:\d+\n$/,
  )
})

test('an IPv6 address is shown in brackets, and none as all of them', async () => {
  const drain = new AbortController()
  const hosts = ['--health-server-host=::1', '--admin-bind-address=']
  const argv = [`--ca-cert=${directory}/ca.crt`, ...ports, ...hosts]
  const { stdout } = await run(argv, () => drain.abort(), { drain: drain.signal })
  expect(stdout).toMatch(/^health {5}\[::1\]:\d+ .*\nadmin {6}\*:\d+$/m)
})

test('a program is told in one line of JSON', async () => {
  const drain = new AbortController()
  const argv = [`--ca-cert=${directory}/ca.crt`, '--agent-id=me', '--output=json', ...ports]
  const { stdout } = await run(argv, () => drain.abort(), { drain: drain.signal })
  expect(JSON.parse(stdout)).toEqual({
    agentId: 'me',
    health: expect.any(Number),
    admin: expect.any(Number),
  })
})

test('a port that is in use is an error with a way out', async () => {
  const drain = new AbortController()
  let second: Promise<{ code: ExitCode; stderr: string }> | undefined
  const ca = `--ca-cert=${directory}/ca.crt`
  await run(
    [ca, '--output=json', ...ports],
    (text) => {
      const { health } = JSON.parse(text) as { health: number }
      second = run([ca, ...ports, `--health-server-port=${health}`]).finally(() => drain.abort())
    },
    { drain: drain.signal },
  )
  const { code, stderr } = await second!
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /cannot listen on 127\.0\.0\.1:\d+ for health: the port is in use\nhint: stop/,
  )
})

test.each(['ca-cert', 'agent-cert', 'agent-key', 'service-account-token-path'])(
  'a file of --%s that others can write ends it at the start [SEC-R1711]',
  async (flag) => {
    const open = join(directory, `open-${flag}`)
    await writeFile(open, '')
    await chmod(open, 0o666)
    const files = {
      'ca-cert': join(directory, 'ca.crt'),
      'agent-cert': join(directory, 'ca.crt'),
      'agent-key': join(directory, 'ca.crt'),
      [flag]: open,
    }
    const argv = Object.entries(files).map(([name, path]) => `--${name}=${path}`)
    const drain = new AbortController()
    const ran = await run([...argv, ...ports], () => drain.abort(), { drain: drain.signal })
    expect([ran.code, ran.stdout]).toEqual([1, ''])
    expect(ran.stderr).toContain(`error: ${open} cannot be trusted: other users can write it`)
    expect(ran.stderr).toContain(`chmod go-w ${open}`)
  },
)

test('so does a configuration file, with the reason and the command [SEC-R1704]', async () => {
  const file = join(directory, 'conf.yaml')
  await writeFile(file, '')
  await chmod(file, 0o666)
  const ran = await run([`--config=${file}`])
  expect([ran.code, ran.stdout]).toEqual([1, ''])
  expect(ran.stderr).toContain(`error: ${file} cannot be trusted: other users can write it`)
  expect(ran.stderr).toContain(`hint: check its content, then: chmod go-w ${file}`)
})
