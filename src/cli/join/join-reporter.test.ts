import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { DiscoveryFailed } from '../../bootstrap/discovery/index.ts'
import type { Io } from '../io.ts'
import { JoinReporter } from './reporter.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function report(interactive: boolean): { reporter: JoinReporter; said: () => string } {
  let said = ''
  const never = new AbortController().signal
  const io: Io = {
    env: {},
    interactive,
    columns: 80,
    isRoot: false,
    homeDirectory: '/',
    stdout: () => {},
    stderr: (text) => {
      said += text
    },
    drain: never,
    kill: never,
  }
  return { reporter: new JoinReporter(io, () => performance.now()), said: () => said }
}

const refused = (message = 'nothing listens') => ({
  step: 'waiting' as const,
  failure: new DiscoveryFailed('unreachable', message, { hint: 'start it', mayPass: true }),
  waitMs: 1_000,
})

describe('what is waited for [DISC-C6]', () => {
  test('is said once with the next step, however often it is tried', () => {
    const { reporter, said } = report(false)
    reporter.discovery({ step: 'asking', address: 'https://a' })
    for (const _ of [1, 2, 3]) {
      reporter.discovery(refused())
      reporter.discovery({ step: 'asking', address: 'https://a' })
    }
    expect(said()).toBe(
      'Asking https://a for the cluster\n  not yet: nothing listens\n    start it\n',
    )
    reporter.end()
  })

  test('is said anew when it is another thing', () => {
    const { reporter, said } = report(false)
    reporter.discovery(refused())
    reporter.discovery(refused('not ready (503)'))
    expect(said()).toContain('  not yet: not ready (503)\n')
    reporter.end()
  })

  test.each([
    ['in a log every half minute', false, '  still waiting, for 30 s\n  still waiting, for 60 s\n'],
    ['on a terminal every second, in place', true, '\r\u001B[K  still waiting, for 60 s'],
  ])('goes on %s', (_name, interactive, end) => {
    const { reporter, said } = report(interactive)
    reporter.discovery(refused())
    vi.advanceTimersByTime(60_000)
    expect(said().endsWith(end)).toBe(true)
    reporter.end()
    expect(said().endsWith(interactive ? '\r\u001B[K' : end)).toBe(true)
    const before = said()
    vi.advanceTimersByTime(60_000)
    expect(said()).toBe(before)
  })

  test('is not worth a line if it is over at once', () => {
    const { reporter, said } = report(false)
    reporter.join({ step: 'pending', request: 'r', approved: false })
    vi.advanceTimersByTime(1_000)
    reporter.join({ step: 'pending', request: 'r', approved: true })
    vi.advanceTimersByTime(1_000)
    reporter.end()
    vi.advanceTimersByTime(60_000)
    expect(said()).toBe('')
  })

  test('tells an administrator what to do', () => {
    const { reporter, said } = report(false)
    reporter.join({ step: 'pending', request: 'node-csr-1', approved: false })
    vi.advanceTimersByTime(2_000)
    expect(said()).toContain('kubectl certificate approve node-csr-1\n')
    reporter.end()
  })
})

test.each([
  [true, '\r\u001B[Ktrace\n'],
  [false, 'trace\n'],
])('a line of the log comes between, and the waiting goes on: terminal %s', (interactive, line) => {
  const { reporter, said } = report(interactive)
  reporter.discovery(refused())
  const before = said()
  reporter.log('trace\n')
  expect(said()).toBe(`${before}${line}`)
  vi.advanceTimersByTime(30_000)
  expect(said()).toContain('still waiting, for 30 s')
  reporter.end()
})

test('words of a server cannot command the terminal', () => {
  const { reporter, said } = report(true)
  reporter.discovery({ step: 'warning', message: 'a\u001B[2Jb\nc' })
  expect(said()).toBe('warning: aU+001B[2JbU+000Ac\n')
})
