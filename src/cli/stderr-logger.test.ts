import { expect, test } from 'vitest'
import { CommandFailed, logLevels, Secret } from '../core/index.ts'
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
