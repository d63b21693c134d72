import { describe, expect, expectTypeOf, test } from 'vitest'
import { defineOptions, type Secret, WrongUsage } from '../../core/index.ts'
import { asksForHelp, type OptionSources, parseOptions } from './index.ts'

const options = defineOptions({
  port: { type: 'integer', min: 1, max: 9, default: 5, short: 'p', group: 'G', describe: 'a port' },
  'bind-address': { type: 'address', repeatable: true, group: 'G', describe: 'an address' },
  verbose: { type: 'boolean', default: false, group: 'G', describe: 'say more' },
  'wait-time': { type: 'duration', default: 1_000, group: 'G', describe: 'a time' },
  size: { type: 'bytes', group: 'G', describe: 'a size' },
  range: { type: 'cidr', group: 'G', describe: 'a range' },
  level: {
    type: 'choice',
    choices: ['low', 'high'],
    default: 'low',
    group: 'G',
    describe: 'a level',
  },
  file: { type: 'path', env: 'OTHER_FILE', group: 'G', describe: 'a file' },
  token: { type: 'string', secret: true, group: 'G', describe: 'a token' },
  config: { type: 'path', group: 'G', describe: 'a configuration file' },
})
const shape = { command: 'sallyport try', summary: 'Tries.', options, examples: [] }

const noFile = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOENT' }))
const read = (argv: string, more: Partial<OptionSources> = {}) =>
  parseOptions(shape, { argv: argv.split(' ').filter(Boolean), env: {}, readFile: noFile, ...more })
const valuesOf = async (...asked: Parameters<typeof read>) => (await read(...asked)).values
const problemsOf = async (...asked: Parameters<typeof read>): Promise<string> => {
  const error: unknown = await read(...asked).catch((err: unknown) => err)
  return error instanceof WrongUsage ? error.message : ''
}

test('a default holds until something is given, and no default is undefined or an empty list', async () => {
  const parsed = await read('')
  expect(parsed.values).toEqual({
    port: 5,
    bindAddress: [],
    verbose: false,
    waitTime: 1_000,
    size: undefined,
    range: undefined,
    level: 'low',
    file: undefined,
    token: undefined,
    config: undefined,
  })
})

test('the types of the values follow from the declarations', async () => {
  const { values } = await read('')
  expectTypeOf(values.port).toEqualTypeOf<number>()
  expectTypeOf(values.bindAddress).toEqualTypeOf<readonly string[]>()
  expectTypeOf(values.size).toEqualTypeOf<number | undefined>()
  expectTypeOf(values.level).toEqualTypeOf<'low' | 'high'>()
  expectTypeOf(values.token).toEqualTypeOf<Secret | undefined>()
  expect(values.level).toBe('low')
})

describe('a flag is read in every usual form', () => {
  test.each<[string, Record<string, unknown>]>([
    ['--port 7', { port: 7 }],
    ['--port=7', { port: 7 }],
    ['-p 7', { port: 7 }],
    ['-p=7', { port: 7 }],
    ['--port 7 --port 8', { port: 8 }],
    ['--verbose', { verbose: true }],
    ['--verbose=false', { verbose: false }],
    ['--verbose=1', { verbose: true }],
    ['--verbose --no-verbose', { verbose: false }],
    ['--bind-address ::1 --bind-address 10.0.0.1', { bindAddress: ['::1', '10.0.0.1'] }],
    ['--bind-address ::1,10.0.0.1', { bindAddress: ['::1', '10.0.0.1'] }],
    ['--wait-time 1m30s', { waitTime: 90_000 }],
    ['--wait-time 1.5h', { waitTime: 5_400_000 }],
    ['--size 3Mi', { size: 3_145_728 }],
    ['--size 10', { size: 10 }],
    ['--range 10.0.0.0/8', { range: '10.0.0.0/8' }],
    ['--range fd00::/108', { range: 'fd00::/108' }],
    ['--level high', { level: 'high' }],
    ['--file -', { file: '-' }],
    ['--file=a=b', { file: 'a=b' }],
  ])('%s', async (argv, expected) => {
    expect(await valuesOf(argv)).toMatchObject(expected)
  })
})

describe('a wrong value is told with what would be right', () => {
  test.each([
    ['--port 10', '--port must be from 1 to 9, not "10"'],
    ['--port ten', '--port must be a whole number, not "ten"'],
    ['--port', '--port needs a value'],
    ['--port --verbose', '--port needs a value'],
    ['--verbose=maybe', '--verbose must be true or false, not "maybe"'],
    ['--bind-address host', '--bind-address must be an IP address, not "host"'],
    ['--wait-time 5', '--wait-time must be a duration such as 90s or 1h30m, not "5"'],
    ['--size 3mb', '--size must be a size such as 1048576 or 3Mi, not "3mb"'],
    ['--range 10.0.0.0/33', '--range must be an address range such as 10.96.0.0/12'],
    ['--range 10.0.0.0', '--range must be an address range such as 10.96.0.0/12'],
    ['--level middle', '--level must be one of low, high, not "middle"'],
    ['--file=', '--file must be a path, not ""'],
    ['--prot 3', 'there is no option --prot, did you mean --port?'],
    ['--wait 3s', 'there is no option --wait, did you mean --wait-time?'],
    ['--no-port', 'there is no option --no-port'],
    ['-x', 'there is no option -x'],
    ['word', 'unexpected argument "word"'],
    ['-- --port', 'unexpected argument "--port"'],
  ])('%s', async (argv, expected) => {
    expect(await problemsOf(argv)).toContain(expected)
  })

  test('all problems come at once [GND-R8]', async () => {
    const said = await problemsOf('--port ten --levle low extra', { env: { SALLYPORT_SIZE: 'x' } })
    for (const part of ['--port', '--levle', 'extra', 'SALLYPORT_SIZE'])
      expect(said).toContain(part)
  })

  test('a word that resembles nothing gets no suggestion', async () => {
    expect(await problemsOf('--entirely-else')).toBe('there is no option --entirely-else')
  })
})

describe('flag, environment, file and default have this order [GND-R8]', () => {
  const readFile = () => Promise.resolve('port: 2\nbind-address: [::1, 10.0.0.2]\nverbose: true\n')

  test.each<[string, string, Record<string, string>, number]>([
    ['the default', '', {}, 5],
    ['the file beats the default', '--config x', {}, 2],
    ['the environment beats the file', '--config x', { SALLYPORT_PORT: '3' }, 3],
    ['a flag beats the environment', '--config x --port 4', { SALLYPORT_PORT: '3' }, 4],
    ['an empty variable counts for nothing', '', { SALLYPORT_PORT: '' }, 5],
  ])('%s', async (_name, argv, env, port) => {
    expect((await valuesOf(argv, { env, readFile })).port).toBe(port)
  })

  test('a list of a stronger source replaces that of a weaker one', async () => {
    const { bindAddress } = await valuesOf('--config x --bind-address 10.0.0.9', { readFile })
    expect(bindAddress).toEqual(['10.0.0.9'])
  })

  test('the file may be named by the environment, and a variable may have a name of its own', async () => {
    const env = { SALLYPORT_CONFIG: 'x', OTHER_FILE: '/a' }
    const values = await valuesOf('', { env, readFile })
    expect([values.port, values.verbose, values.file]).toEqual([2, true, '/a'])
  })
})

describe('a configuration file that is wrong is refused with its name', () => {
  test.each([
    ['- a\n', 'x.yaml: must be a mapping'],
    ['port: [1, 2\n', 'x.yaml: '],
    ['port: 1\nport: 2\n', 'x.yaml: line 2, column 1: duplicate key'],
    ['prot: 1\n', 'x.yaml: there is no option prot, did you mean port?'],
    ['config: other\n', 'x.yaml: config cannot be set'],
    ['port: {a: 1}\n', 'x.yaml: port must be a value or a list of values'],
    ['port: 77\n', 'x.yaml: port must be from 1 to 9, not "77"'],
    ['port: &a 1\nsize: *a\n', 'x.yaml: aliases are not supported'],
  ])('%j', async (content, expected) => {
    const readFile = () => Promise.resolve(content)
    expect(await problemsOf('--config x.yaml', { readFile })).toContain(expected)
  })

  test('one that is not there', async () => {
    expect(await problemsOf('--config x.yaml')).toContain('x.yaml: there is no such file')
  })

  test('an empty one changes nothing', async () => {
    expect(await valuesOf('--config x', { readFile: () => Promise.resolve('') })).toMatchObject({
      port: 5,
    })
  })
})

test('a secret is not shown, neither when it is right nor when it is wrong', async () => {
  const { token } = await valuesOf('--token hunter2')
  expect(String(token)).toBe('[redacted]')
  expect(token?.reveal()).toBe('hunter2')
  const refusing = defineOptions({
    token: {
      type: 'string',
      secret: true,
      check: () => 'must be better',
      group: 'G',
      describe: 't',
    },
  })
  const parsing = parseOptions(
    { ...shape, options: refusing },
    { argv: ['--token', 'hunter2'], env: {}, readFile: noFile },
  )
  const error: unknown = await parsing.catch((err: unknown) => err)
  expect(String(error)).toContain('--token must be better')
  expect(String(error)).not.toContain('hunter2')
})

describe('words that are not options', () => {
  const named = {
    ...shape,
    options: { must: { type: 'string', required: true, group: 'G', describe: 'needed' } } as const,
    arguments: [
      { name: 'NAME', describe: 'who', required: true },
      { name: 'REST', describe: 'more', repeatable: true },
    ],
  }
  const parse = (...argv: string[]) => parseOptions(named, { argv, env: {}, readFile: noFile })

  test('are kept in order, also after --', async () => {
    const { positionals } = await parse('a', '--must', 'x', '-', '--', '--b')
    expect(positionals).toEqual(['a', '-', '--b'])
  })

  test('are asked for when they are required, as options are', async () => {
    await expect(parse()).rejects.toThrow('NAME is missing: who')
    await expect(parse('a')).rejects.toThrow('--must is required: needed')
  })
})

test.each([
  ['--port 3 --help', true],
  ['-h', true],
  ['-- --help', false],
  ['help', false],
])('%s asks for help: %s', (argv, expected) => {
  expect(asksForHelp(argv.split(' '))).toBe(expected)
})
