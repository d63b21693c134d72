import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commands } from '../../src/cli/commands.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { runSallyport } from '../support/sallyport-process.ts'

const names = commands.map(({ command }) => command)
const wordsOf = (command: string): string[] => command.split(' ').slice(1)
const stackTrace = /^\s+at .*:\d+/m

let empty: string
beforeAll(async () => {
  empty = await mkdtemp(join(tmpdir(), 'sallyport-command-'))
})
afterAll(() => rm(empty, { recursive: true, force: true }))

describe.each(names)('%s [GND-R11]', (command) => {
  const declared = commands.find((one) => one.command === command)
  const words = wordsOf(command)

  test.each(['--help', '-h'])('explains itself with %s', async (flag) => {
    const { code, stdout, stderr } = await runInProcess([...words, flag])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(new RegExp(`^Usage: ${command}`))
    expect(stdout).toContain('Examples\n')
    for (const { line } of declared?.examples ?? []) expect(stdout).toContain(line)
    expect(stdout).toContain('--output')
    // A default value without a space cannot be broken.
    const broken = stdout.split('\n').filter((line) => line.trim().includes(' '))
    for (const line of broken) expect(line.length).toBeLessThanOrEqual(100)
  })

  test('refuses an option that it does not have and says which was meant', async () => {
    const { code, stdout, stderr } = await runInProcess([...words, '--outptu', 'json'])
    expect(code).toBe(2)
    expect(stderr).toContain('there is no option --outptu, did you mean --output?')
    expect(stderr.match(/--help/g)).toHaveLength(1)
    expect(stdout).toBe('')
  })

  test('tells a program of a wrong call in JSON', async () => {
    for (const output of [['--output', 'json'], ['--output=json']]) {
      const { code, stdout } = await runInProcess([...words, '--nonsense', ...output])
      expect(code).toBe(2)
      expect(JSON.parse(stdout)).toMatchObject({
        error: { code: 'WRONG_USAGE', message: expect.stringContaining('--nonsense') },
      })
    }
    const byEnvironment = await runInProcess([...words, '--nonsense'], {
      env: { SALLYPORT_OUTPUT: 'json' },
    })
    expect(JSON.parse(byEnvironment.stdout)).toMatchObject({ error: { code: 'WRONG_USAGE' } })
  })

  test('takes no secret from the command line that a file could not hold', () => {
    const table = declared?.options ?? {}
    const secrets = Object.keys(table).filter((name) => table[name]?.secret)
    expect(secrets.filter((name) => !Object.hasOwn(table, `${name}-file`))).toEqual([])
  })
})

describe('a failure is told in words, with a code for programs [GND-R11]', () => {
  /** A call of each command that cannot work, where there is nothing. */
  const failing: Record<string, string[]> = {
    'sallyport up': ['--tls-cert-file', 'only-one'],
    'sallyport serve': ['--tls-cert-file', 'only-one'],
    'sallyport join': ['http://insecure', '--token', 'abcdef.0123456789abcdef'],
    'sallyport user create': ['jane'],
    'sallyport user list': [],
    'sallyport user revoke': ['jane'],
    'sallyport token create': [],
    'sallyport token list': [],
    'sallyport token show': ['abcdef'],
    'sallyport token delete': ['abcdef'],
    'sallyport cluster-info show': [],
    'sallyport cluster-info set-server': ['https://a'],
    'sallyport cluster-info add-ca': ['/nonexistent/ca.crt'],
    'sallyport cluster-info remove-ca': ['sha256:00'],
    'sallyport cluster-info refresh': ['--kubeconfig', '/nonexistent/kubeconfig'],
    'sallyport pki rotate-ca': ['status'],
    'sallyport credential': [],
    'sallyport guard': ['--forward', 'nonsense'],
    'sallyport proxy': ['--kubeconfig', '/nonexistent/kubeconfig'],
    'sallyport workload run': ['--kubeconfig', '/nonexistent/kubeconfig', 'true'],
    'sallyport issuer keys': [],
    'sallyport issuer rotate': [],
    'sallyport issuer publish': ['--out', 'public'],
    'sallyport issuer serve': ['--tls-cert-file', 'only-one'],
    'sallyport issuer verify': ['--token-file', '/nonexistent/token'],
    'sallyport doctor issuer': ['not-a-url'],
    'sallyport tunnel server': ['--server-port', 'many'],
    'sallyport tunnel agent': ['--kubeconfig', '/nonexistent/kubeconfig'],
    'sallyport store check': [],
    'sallyport store backup': ['file'],
    'sallyport store restore': ['nonexistent'],
    'sallyport store repair': [],
    'sallyport version': ['unexpected'],
  }

  test('and every command is tried', () => {
    expect(Object.keys(failing).sort()).toEqual([...names].sort())
  })

  test.each(Object.entries(failing))('%s', async (command, args) => {
    const where = declaresDataDirectory(command) ? ['--data-dir', join(empty, 'none')] : []
    const call = [...wordsOf(command), ...args, ...where]
    const text = await runInProcess(call)
    expect([1, 2]).toContain(text.code)
    expect(text.stdout).toBe('')
    expect(text.stderr).toMatch(/^error: \S/)
    expect(text.stderr).not.toMatch(stackTrace)
    expect(text.stderr).not.toContain('unexpected failure')

    const json = await runInProcess([...call, '--output', 'json'])
    expect(json.code).toBe(text.code)
    const { error } = JSON.parse(json.stdout) as { error: { code: string; message: string } }
    expect(error.code).toMatch(/^[A-Z][A-Z_]+$/)
    expect(text.stderr).toContain(error.message)
  })

  const declaresDataDirectory = (command: string): boolean =>
    'data-dir' in (commands.find((one) => one.command === command)?.options ?? {})
})

describe('sallyport itself [GND-R11]', () => {
  test.each([[[]], [['--help']], [['help']]])('%j lists every command', async (args) => {
    const { code, stdout, stderr } = await runInProcess(args)
    expect([code, stderr]).toEqual([0, ''])
    for (const name of names) expect(stdout).toContain(name)
  })

  test.each([[['user', '--help']], [['help', 'user']]])('%j lists a group', async (args) => {
    const { code, stdout } = await runInProcess(args)
    expect(code).toBe(0)
    expect(stdout).toContain('sallyport user create')
    expect(stdout).not.toContain('sallyport store')
  })

  test('help with a command is its --help', async () => {
    const [asked, flagged] = await Promise.all([
      runInProcess(['help', 'user', 'create']),
      runInProcess(['user', 'create', '--help']),
    ])
    expect(asked).toEqual(flagged)
  })

  test.each([
    [['usr', 'create', 'x'], 'did you mean `sallyport user create`?'],
    [['pu'], 'did you mean `sallyport up`?'],
    [['user', 'remove'], 'there is no command `sallyport user remove`'],
    [['help', 'nonsense'], 'there is no command `sallyport nonsense`'],
    [['something-else-entirely'], 'run `sallyport --help` for the list'],
  ])('%j is wrong usage', async (args, words) => {
    const { code, stdout, stderr } = await runInProcess(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(words)
  })

  test('a group without its second word is wrong usage, and shows what there is', async () => {
    const { code, stdout, stderr } = await runInProcess(['user'])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('sallyport user revoke')
  })

  test('a word `json` that is no output form changes nothing', async () => {
    const { stdout } = await runInProcess(['json'])
    expect(stdout).toBe('')
  })
})

describe('server options that cannot work together are wrong usage [GND-R11]', () => {
  test.each([
    [['--tls-cert-file', 'a'], 'must be given together'],
    [['--requestheader-allowed-names', 'a'], 'needs --requestheader-client-ca-file'],
    [['--service-cluster-ip-range', '10.0.0.0/8,11.0.0.0/8'], 'one of each IP family'],
    [['--secure-port', '70000'], 'must be from 0 to 65535'],
    [['--bind-address', 'localhost'], 'must be an IP address'],
    [['--audit-log-maxsize', '0'], 'must be from 1'],
    [['--request-timeout', 'soon'], 'must be a duration such as 90s'],
    [['--config', '/nonexistent/file'], 'there is no such file'],
  ])('%j', async (args, words) => {
    for (const command of ['up', 'serve']) {
      const place = ['--data-dir', join(empty, 'none')]
      const { code, stderr } = await runInProcess([command, ...args, ...place])
      expect(code).toBe(2)
      expect(stderr).toContain(words)
    }
  })

  test.each([
    ['--client-ca-file', 'garbage'],
    ['--requestheader-client-ca-file', 'garbage'],
    ['--token-auth-file', 'only-a-token\n'],
    ['--client-ca-file', undefined],
    ['--requestheader-client-ca-file', undefined],
    ['--token-auth-file', undefined],
    ['--audit-log-path', undefined],
  ])('%s with a file of %j is a failure that names the file', async (flag, content) => {
    const file = join(empty, content === undefined ? 'none/none' : 'bad')
    if (content !== undefined) await writeFile(file, content)
    const args = ['--data-dir', join(empty, 'data'), '--secure-port', '0']
    const { code, stderr } = await runInProcess(['up', flag, file, ...args])
    expect(code).toBe(1)
    expect(stderr).toContain(file)
    expect(stderr).not.toMatch(stackTrace)
    expect(stderr).not.toContain('unexpected failure')
    expect(stderr).not.toContain('only-a-token')
  })
})

test('the program itself exits with these codes [GND-R11]', async () => {
  const [good, failed, wrong] = await Promise.all([
    runSallyport(['version']),
    runSallyport(['user', 'list', '--data-dir', join(empty, 'none')]),
    runSallyport(['version', '--nonsense']),
  ])
  expect([good.code, failed.code, wrong.code]).toEqual([0, 1, 2])
  expect(good.stdout).toMatch(/^\d+\.\d+\.\d+/)
})
