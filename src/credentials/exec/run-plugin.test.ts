import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseKubeconfig } from '../../kubeconfig/index.ts'
import { inspectPlugin } from './inspect-plugin.ts'
import type { PluginHost } from './plugin.ts'
import {
  execConfig,
  failureOf,
  freshDirectory,
  Heard,
  isRunning,
  labHost,
  standIn,
  version,
  writeProgram,
} from './plugin-lab.suite.ts'
import { runPlugin } from './run-plugin.ts'

const run = (
  name: string,
  rest: Parameters<typeof execConfig>[1] = {},
  rules: Partial<PluginHost> = {},
) => runPlugin({ exec: execConfig(standIn(name), rest) }, labHost(rules))
const shell = (text: string, rest: Parameters<typeof execConfig>[1] = {}) =>
  execConfig('sh', { args: ['-c', text], ...rest })
const token = '{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"canary-token"}}'

describe('a run', () => {
  test('gives the credential that the program prints [CRED-R1]', async () => {
    const credential = await run('prints', { env: { OUTPUT: token } })
    expect(credential.token?.reveal()).toBe('canary-token')
    expect(inspect(credential) + JSON.stringify(credential)).not.toContain('canary')
  })

  test('passes arguments as they are, without a shell [CRED-R1, CRED-S2, CRED-E8]', async () => {
    const args = ['; exit 9', '$(id)', '${HOME}', '`id`', 'a b', "'", '"', '*', '~', 'a\nb', '']
    const directory = freshDirectory()
    const file = join(directory, 'seen')
    const program = writeProgram(
      directory,
      'plugin.cjs',
      `#!/usr/bin/env node
require('node:fs').writeFileSync(${JSON.stringify(file)}, JSON.stringify([process.argv.slice(2), process.cwd()]))
console.log(${JSON.stringify(token)})`,
    )
    const cwd = freshDirectory()
    await runPlugin({ exec: execConfig(program, { args }) }, labHost({ cwd }))
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual([args, cwd])
  })

  test('tells the plugin what is asked of it, each time [CRED-R4]', async () => {
    const record = join(freshDirectory(), 'record')
    const rest = { env: { RECORD: record, OUTPUT: token } }
    await run('prints', rest)
    await run('prints', rest)
    const line = `{"kind":"ExecCredential","apiVersion":"${version('v1')}","spec":{"interactive":false}}\n`
    expect(readFileSync(record, 'utf8')).toBe(line + line)
  })

  test('ends where stdin ends at once if the user is not asked [CRED-E5]', async () => {
    const error = await failureOf(run('asks-for-code'))
    expect(error).toMatchObject({ code: 'EXIT', exitCode: 1 })
  })

  test('lets the plugin talk to a stream in place of stderr [CRED-R6, CRED-E7]', async () => {
    const stderr = new Heard()
    const credential = await run('warns', {}, { stderr })
    expect(credential.token?.reveal()).toBe('warned-token')
    expect(stderr.text).toBe('warning: this version is deprecated\n')
    expect(stderr.writableEnded).toBe(false)
  })

  test('finds the program by the host’s PATH, while the plugin sees the kubeconfig’s [CRED-S3]', async () => {
    const [hosts, configs] = [freshDirectory(), freshDirectory()]
    writeProgram(hosts, 'plugin', `#!/bin/sh\n[ "$PATH" = ${configs} ] && printf %s '${token}'`)
    writeProgram(configs, 'plugin', '#!/bin/sh\nexit 9')
    const exec = execConfig('plugin', { env: { PATH: configs } })
    const host = labHost({ env: { PATH: `${hosts}:/bin` } })
    expect((await inspectPlugin({ exec }, host)).resolvedPath).toBe(join(hosts, 'plugin'))
    expect((await runPlugin({ exec }, host)).token?.reveal()).toBe('canary-token')
  })

  test.each([{}, { args: [], env: {} }])(
    'needs neither args nor env: %j [CRED-R25]',
    async (rest) => {
      expect((await run('null-expiry', rest)).token?.reveal()).toBe('lasting-token')
    },
  )

  test('can be looked at without running anything [CRED-S1]', async () => {
    const record = join(freshDirectory(), 'record')
    const exec = execConfig(standIn('prints'), { env: { RECORD: record } })
    const plan = await inspectPlugin({ exec }, labHost())
    expect(plan).toEqual({ resolvedPath: standIn('prints'), interactive: false })
    expect(() => readFileSync(record)).toThrow('ENOENT')
  })
})

describe('the seed’s sample users', () => {
  const sample = (command: string, args: string) => `
users:
- name: sample
  user:
    exec:
      apiVersion: "client.authentication.k8s.io/v1alpha1"
      command: ${command}
      args: ${args}`
  const answer = (text: string) =>
    `printf '{"kind":"ExecCredentials","apiVersion":"${version('v1alpha1')}","token":"%s","expiry":2000000000}' "${text}"`

  test.each([
    ['kubectl-login', '["hello", "world"]', 'hello,world', true],
    [
      'heptio-authenticator-aws',
      '["token", "-i", "(CLUSTER_ID)", "-r", "(ROLE_ARN)"]',
      'token,-i,(CLUSTER_ID),-r,(ROLE_ARN)',
      false,
    ],
  ])('%s parses and runs [CRED-R24, CRED-R8]', async (name, args, expected, byPath) => {
    const directory = freshDirectory()
    const program = writeProgram(directory, name, `#!/bin/sh\nIFS=,\n${answer('$*')}`)
    const text = sample(byPath ? program : name, args)
    const config = await parseKubeconfig(text, 'sample')
    const exec = config.users.get('sample')?.exec
    if (!exec) throw new Error('the sample has an exec section')
    const host = labHost({ env: { PATH: directory }, inputDialect: 'seed' })
    const credential = await runPlugin({ exec }, host)
    expect(credential.token?.reveal()).toBe(expected)
    expect(credential.expiresAt).toBe(2e12)
  })
})

describe('a plugin that fails', () => {
  test.each([
    ['exits with 3', 'exit 3', { code: 'EXIT', exitCode: 3 }],
    ['prints an answer and exits with 1', `echo '${token}'; exit 1`, { code: 'EXIT', exitCode: 1 }],
    ['kills itself', 'kill -9 $$', { code: 'SIGNAL', signal: 'SIGKILL' }],
  ])('%s [CRED-R2, CRED-E12]', async (_name, text, expected) => {
    const error = await failureOf(runPlugin({ exec: shell(text) }, labHost()))
    expect(error).toMatchObject({ ...expected, command: 'sh' })
    expect(error.resolvedPath).toMatch(/^\/.*\/sh$/)
    expect(error.message).toContain('"sh"')
  })

  test('says nothing of what it was given or printed [CRED-S4]', async () => {
    const exec = shell('echo "$SECRET"; echo "$SECRET" >&2; exit 1', {
      args: ['-c', 'echo "canary $SECRET"; exit 1', 'canary-arg'],
      env: { SECRET: 'canary-env' },
    })
    for (const rules of [{}, { cwd: '/does/not/exist' }, { maxOutputBytes: 3 }]) {
      const error = await failureOf(runPlugin({ exec }, labHost(rules)))
      const shown = inspect(error, { depth: 9, showHidden: true, customInspect: false })
      expect(shown + inspect(error) + JSON.stringify(error)).not.toContain('canary')
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: error.code, command: 'sh' })
    }
  })

  test.each([
    ['command', execConfig('sh', { args: ['canary\0'] })],
    ['variable', execConfig('sh', { env: { A: 'canary\0' } })],
  ])('a null character in a %s is refused without quoting it [CRED-S4]', async (_name, exec) => {
    const error = await failureOf(runPlugin({ exec }, labHost()))
    expect(error.code).toBe('CONFIG_INVALID')
    expect(inspect(error)).not.toContain('canary')
  })

  test('is not run for a version or a mode that does not exist', async () => {
    for (const more of [{ apiVersion: 'v1' }, { interactiveMode: 'Perhaps' }, { command: '' }]) {
      const exec = { ...execConfig('sh'), ...more }
      expect(await failureOf(runPlugin({ exec }, labHost()))).toMatchObject({
        code: 'CONFIG_INVALID',
      })
    }
  })
})

describe('a program that cannot run', () => {
  test('is told from one whose interpreter is missing [CRED-S3]', async () => {
    const program = writeProgram(freshDirectory(), 'plugin', '#!/no/such/interpreter -x\n')
    const error = await failureOf(runPlugin({ exec: execConfig(program) }, labHost()))
    expect(error.code).toBe('NOT_EXECUTABLE')
    expect(error.message).toContain('interpreter "/no/such/interpreter" does not exist')
  })

  test('is told from a working directory that is gone [CRED-S3]', async () => {
    const error = await failureOf(run('prints', {}, { cwd: '/no/such/directory' }))
    expect(error.code).toBe('SPAWN')
    expect(error.message).toContain('working directory')
  })

  test('a text without a #! line is not handed to a shell [CRED-S2]', async () => {
    const program = writeProgram(freshDirectory(), 'plugin', `echo '${token}'\n`)
    const error = await failureOf(runPlugin({ exec: execConfig(program) }, labHost()))
    expect(error.code).toBe('NOT_EXECUTABLE')
  })

  test('has no execute rights', async () => {
    const program = writeProgram(freshDirectory(), 'plugin', '#!/bin/sh\n', 0o600)
    const error = await failureOf(runPlugin({ exec: execConfig(program) }, labHost()))
    expect(error.code).toBe('NOT_EXECUTABLE')
  })

  test('an environment beyond the system’s limit is explained [CRED-E4]', async () => {
    const exec = execConfig(standIn('prints'), { provideClusterInfo: true })
    const cluster = { server: 'https://a', certificateAuthorityData: 'x'.repeat(200_000) }
    const error = await failureOf(runPlugin({ exec, cluster }, labHost()))
    expect(error.code).toBe('INPUT_TOO_LARGE')
    expect(error.message).toContain('provideClusterInfo')
  })

  test('asks for a cluster that nobody knows', async () => {
    const error = await failureOf(run('needs-cluster', { provideClusterInfo: true }))
    expect(error.code).toBe('CONFIG_INVALID')
  })
})

describe('a program that is not installed', () => {
  const missing = (command: string, installHint?: string, rules: Partial<PluginHost> = {}) =>
    failureOf(
      runPlugin({ exec: execConfig(command, installHint ? { installHint } : {}) }, labHost(rules)),
    )

  test.each(['no-such-plugin-1', '/no/such/plugin'])(
    '%s: the hint helps [CRED-E13]',
    async (name) => {
      const error = await missing(name, 'Install it:\n  get plugin')
      expect(error).toMatchObject({ code: 'NOT_FOUND', command: name })
      expect(error.message).toContain('Install it:\n  get plugin')
      expect(error.hint).toBe('Install it:\n  get plugin')
    },
  )

  test('the hint has no power over the terminal [CRED-S5]', async () => {
    const error = await missing('no-such-plugin-2', 'a\x1b[2Jb\u202ec\rd\u{e0001}\te\x07')
    expect(error.hint).toBe('aU+001B[2JbU+202EcU+000DdU+E0001\teU+0007')
    expect(error.message).toContain(error.hint)
  })

  test('nor has its name [CRED-S5]', async () => {
    expect((await missing('no\x1b[2Jplugin')).message).toContain('"no\\x1b[2Jplugin"')
  })

  test('the hint is shown ten times an hour [CRED-E13]', async () => {
    let now = 0
    const clock = { now: () => now, monotonic: () => now }
    const shown = async () =>
      (await missing('no-such-plugin-3', 'get it', { clock })).message.includes('get it')
    for (let time = 0; time < 10; time++) expect(await shown()).toBe(true)
    expect(await shown()).toBe(false)
    now += 3_600_000
    expect(await shown()).toBe(true)
  })
})

describe('a plugin that does not end', () => {
  /** Starts a process that outlives its parent's SIGTERM, and says which it is. */
  const group = (file: string, trap = '') =>
    shell(`${trap} sleep 600 & echo $! > ${file}.tmp && mv ${file}.tmp ${file}; wait; wait; wait`)
  const childOf = (file: string): Promise<number> =>
    vi.waitFor(() => Number(readFileSync(file, 'utf8')), { timeout: 5_000 })

  test('is ended with all that it has started [CRED-S6]', async () => {
    const file = join(freshDirectory(), 'pid')
    const error = await failureOf(runPlugin({ exec: group(file) }, labHost({ timeoutMs: 300 })))
    expect(error.code).toBe('TIMEOUT')
    expect(error.message).toContain('0.3 s')
    const child = await childOf(file)
    await vi.waitFor(() => expect(isRunning(child)).toBe(false), { timeout: 5_000 })
  })

  test('is killed if it does not listen [CRED-S6]', async () => {
    const file = join(freshDirectory(), 'pid')
    const exec = group(file, 'trap "" TERM;')
    const host = labHost({ timeoutMs: 300, killGraceMs: 50 })
    expect((await failureOf(runPlugin({ exec }, host))).code).toBe('TIMEOUT')
    const child = await childOf(file)
    await vi.waitFor(() => expect(isRunning(child)).toBe(false), { timeout: 5_000 })
  })

  test('is ended with all that it has started when its host is interrupted [SEC-R2403]', async () => {
    const file = join(freshDirectory(), 'pid')
    const command = new AbortController()
    const host = labHost({ interrupt: command.signal })
    const ended = failureOf(runPlugin({ exec: group(file) }, host))
    const child = await childOf(file)
    command.abort()
    expect((await ended).code).toBe('ABORTED')
    await vi.waitFor(() => expect(isRunning(child)).toBe(false), { timeout: 5_000 })
    // What a command needs in order to end well is still obtained.
    const output = { env: { OUTPUT: token } }
    expect((await run('prints', output, { interrupt: command.signal })).token).toBeDefined()
  })

  test('is ended by its caller’s signal', async () => {
    const file = join(freshDirectory(), 'pid')
    const caller = new AbortController()
    const ended = failureOf(runPlugin({ exec: group(file) }, labHost(), caller.signal))
    const child = await childOf(file)
    caller.abort()
    expect((await ended).code).toBe('ABORTED')
    await vi.waitFor(() => expect(isRunning(child)).toBe(false), { timeout: 5_000 })
    const again = runPlugin({ exec: group(file) }, labHost(), caller.signal)
    expect((await failureOf(again)).code).toBe('ABORTED')
  })

  test('waits without a terminal until its time is over [CRED-S6]', async () => {
    const error = await failureOf(run('hangs-without-terminal', {}, { timeoutMs: 200 }))
    expect(error.code).toBe('TIMEOUT')
  })

  test('has all the time in the world while the user is asked [CRED-R7]', async () => {
    const { timeoutOf } = await import('./plugin-process.ts')
    expect(timeoutOf(true, labHost())).toBe(0)
    expect(timeoutOf(false, labHost())).toBe(60_000)
    expect(timeoutOf(true, labHost({ timeoutMs: 5 }))).toBe(5)
    expect(timeoutOf(false, labHost({ timeoutMs: 0 }))).toBe(0)
  })

  test('a process that it leaves behind does not hold us [CRED-S6]', async () => {
    const file = join(freshDirectory(), 'pid')
    onTestFinished(() => void process.kill(Number(readFileSync(file, 'utf8'))))
    const started = performance.now()
    const credential = await run('leaves-daemon', { env: { DAEMON_PID: file } })
    expect(credential.token?.reveal()).toBe('daemon-token')
    expect(performance.now() - started).toBeLessThan(15_000)
    expect(isRunning(Number(readFileSync(file, 'utf8')))).toBe(true)
  })
})

describe('a plugin that prints too much', () => {
  test('is ended [CRED-S7]', async () => {
    const error = await failureOf(run('flood'))
    expect(error).toMatchObject({ code: 'OUTPUT_TOO_LARGE' })
  })

  test('may print up to the limit [CRED-S7]', async () => {
    const env = { OUTPUT: token }
    const exact = Buffer.byteLength(token)
    await run('prints', { env }, { maxOutputBytes: exact })
    const error = await failureOf(run('prints', { env }, { maxOutputBytes: exact - 1 }))
    expect(error.code).toBe('OUTPUT_TOO_LARGE')
  })

  test('on stderr, is not kept [CRED-S7]', async () => {
    const exec = shell(`head -c 3000000 /dev/zero >&2; echo '${token}'`)
    const credential = await runPlugin({ exec }, labHost())
    expect(credential.token?.reveal()).toBe('canary-token')
  })
})

test('a plugin that comes back to its caller is stopped [CRED-S18]', async () => {
  const directory = freshDirectory()
  const caller = writeProgram(directory, 'caller', '#!/bin/sh\nenv -0 > "$1"\n')
  const file = join(directory, 'env')
  const exec = execConfig(standIn('calls-its-caller'), { args: [file], env: { CALLER: caller } })
  await runPlugin({ exec }, labHost())
  const variables = readFileSync(file, 'utf8').split('\0').filter(Boolean)
  const env = Object.fromEntries(variables.map((text) => text.split(/=(.*)/s, 2)))
  expect(await failureOf(runPlugin({ exec }, labHost({ env })))).toMatchObject({
    code: 'RECURSION',
    command: exec.command,
  })
})

describe('the stand-ins', () => {
  test.each([
    ['presigned-token', {}, (text: string) => text.startsWith('k8s-aws-v1.')],
    ['v1beta1-only', { apiVersion: version('v1beta1') }, (text: string) => text === 'beta-token'],
    ['null-expiry', {}, (text: string) => text === 'lasting-token'],
  ])('%s gives a token', async (name, rest, isRight) => {
    const credential = await run(name, rest)
    expect(isRight(credential.token?.reveal() ?? '')).toBe(true)
  })

  test('fresh-certificate gives a new pair each time, and its end', async () => {
    const [first, second] = [await run('fresh-certificate'), await run('fresh-certificate')]
    expect(first.token).toBeUndefined()
    expect(first.clientCertificate?.certPem).not.toBe(second.clientCertificate?.certPem)
    expect(first.expiresAt).toBeGreaterThan(Date.now())
  })

  test('needs-cluster gets it', async () => {
    const exec = execConfig(standIn('needs-cluster'), { provideClusterInfo: true })
    const run = runPlugin({ exec, cluster: { server: 'https://a' } }, labHost())
    expect((await run).token?.reveal()).toBe('cluster-token')
  })

  test.each([
    ['v1beta1-only', 'VERSION_MISMATCH'],
    ['notice-before-answer', 'DECODE'],
    ['fails-silently', 'EXIT'],
    ['needs-cluster', 'EXIT'],
  ])('%s fails: %s', async (name, code) => {
    expect((await failureOf(run(name))).code).toBe(code)
  })
})
