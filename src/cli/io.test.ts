import process from 'node:process'
import { afterEach, expect, test, vi } from 'vitest'
import { eraseLine, processIo } from './io.ts'

afterEach(() => {
  vi.restoreAllMocks()
  process.removeAllListeners('SIGINT')
  process.removeAllListeners('SIGTERM')
})

/** Commands to a terminal in one and in two bytes, a bell, a carriage return, and a change of the reading direction. */
const hostile = '\x1b]0;x\x07 \u009b2J \rover \u202eend'
const shown = 'U+001B]0;xU+0007 U+009B2J U+000Dover U+202Eend'

function written(
  stream: 'stdout' | 'stderr',
  isTTY: boolean,
  text = `${hostile}\n\ttab\n`,
): string {
  const spy = vi.spyOn(process[stream], 'write').mockReturnValue(true)
  const before = process[stream].isTTY
  process[stream].isTTY = isTTY
  try {
    processIo()[stream](text)
  } finally {
    process[stream].isTTY = before
  }
  return String(spy.mock.calls.at(-1)?.[0])
}

test('text of others commands no terminal, on either output [SEC-R2404]', () => {
  expect(written('stdout', true)).toBe(`${shown}\n\ttab\n`)
  expect(written('stderr', true)).toBe(`${shown}\n\ttab\n`)
  expect(written('stderr', false)).toBe(`${shown}\n\ttab\n`)
})

test('progress rewrites its line, by a command at the beginning and nowhere else [SEC-R2404]', () => {
  const text = `${eraseLine}waiting ${eraseLine}`
  expect(written('stderr', true, text)).toBe(`${eraseLine}waiting U+000DU+001B[K`)
})

test('a program gets results as they are', () => {
  expect(written('stdout', false)).toBe(`${hostile}\n\ttab\n`)
})
