import { describe, expect, test } from 'vitest'
import { CommandFailed, type Logger, logLevels, Secret } from '../core/index.ts'
import { createLogger } from './logger.ts'

const clock = { now: () => Date.UTC(2026, 0, 2, 3, 4, 5), monotonic: () => 0 }

function logged(format: 'text' | 'json', log: (logger: ReturnType<typeof createLogger>) => void) {
  const lines: string[] = []
  log(createLogger({ level: 'info', format, clock, write: (line) => lines.push(line) }))
  return lines
}

test('a line has level, message and fields', () => {
  const lines = logged('text', (log) => log.child({ component: 'x' }).info({ n: 1 }, 'it works'))
  expect(lines).toEqual(['03:04:05.000 info  it works  component=x  n=1\n'])
})

test.each(logLevels)('at the level %s what is less important is dropped', (level) => {
  const lines: string[] = []
  const log = createLogger({ level, format: 'json', clock, write: (line) => lines.push(line) })
  for (const each of logLevels) log[each]({}, each)
  const heard = lines.map((line) => (JSON.parse(line) as { level: string }).level)
  expect(heard).toEqual(logLevels.slice(0, logLevels.indexOf(level) + 1))
})

test.each(['text', 'json'] as const)('no credential is in a %s line', (format) => {
  const lines = logged(format, (log) =>
    log.info(
      {
        token: 'abc-s3cret',
        nested: { authorization: 'Bearer s3cret' },
        wrapped: new Secret('s3cret'),
      },
      'x',
    ),
  )
  expect(lines.join()).toContain('[redacted]')
  expect(lines.join()).not.toContain('s3cret')
})

test('an error keeps its cause and code in a json line', () => {
  const err = new Error('outer', { cause: new Error('inner') })
  const [line = ''] = logged('json', (log) => log.error({ err }, 'failed'))
  expect(JSON.parse(line)).toMatchObject({ err: { message: 'outer', cause: { message: 'inner' } } })
})

test.each([
  ['of ours', new CommandFailed('NO', 'no'), undefined],
  ['of the system', Object.assign(new Error('no'), { syscall: 'connect' }), undefined],
  ['in the program', new TypeError('no'), expect.stringContaining('stderr-logger.test')],
])('an error %s has a stack only where it helps', (_what, err, stack) => {
  const [line = ''] = logged('json', (log) => log.error({ err }, 'failed'))
  const { err: shown } = JSON.parse(line) as { err: { message: string; stack?: string } }
  expect([shown.message, shown.stack]).toEqual(['no', stack])
})

test('a text line has no power over the terminal [CRED-S5]', () => {
  const err = new Error('said \u009b2J')
  const [line = ''] = logged('text', (log) => log.warn({ url: '/\u001b[2J', err }, 'a\u0007'))
  expect(line).toBe('03:04:05.000 warn  aU+0007  url=/U+001B[2J  err="said U+009B2J"\n')
})

describe('a bootstrap token in a log', () => {
  const secret = '0123456789abcdef'
  const token = `abcdef.${secret}`
  const cause = new Error(`cause ${token}`)
  const places: readonly [string, (text: string) => Parameters<Logger['error']>][] = [
    ['message', (text) => [{}, `said ${text}`]],
    ['field', (text) => [{ userAgent: text }, 'x']],
    ['nested field', (text) => [{ a: { b: [text] } }, 'x']],
    ['name of a field', (text) => [{ [text]: 1 }, 'x']],
    ['error', (text) => [{ err: new Error(text) }, 'x']],
    ['stack', (text) => [{ err: new TypeError(text) }, 'x']],
    ['cause', (text) => [{ err: new Error(text, { cause }) }, 'x']],
    ['detail', (text) => [{ err: Object.assign(new Error('x'), { detail: text }) }, 'x']],
  ]
  const spellings = [
    token,
    token.replace('.', '%2E'),
    encodeURIComponent(`?x=${token}`),
    Buffer.from(token).toString('base64'),
    `\\u0061bcdef.${secret}`,
  ]
  const table = places.flatMap(([place, call]) =>
    (['text', 'json'] as const).flatMap((format) =>
      spellings.map((spelling) => [place, format, spelling, call] as const),
    ),
  )
  test.each(table)('[SEC-R1504] in a %s, as %s, spelled %s', (_place, format, spelling, call) => {
    const lines = logged(format, (log) => log.child({ id: spelling }).error(...call(spelling)))
    expect(lines.join('')).toContain('REDACTED')
    expect(lines.join('')).not.toMatch(/0123456789abcdef|MDEyMzQ1Njc4/)
  })
})
