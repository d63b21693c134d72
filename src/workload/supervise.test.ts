import { describe, expect, test } from 'vitest'
import { ApiError, aborted, silentLogger, systemClock, unauthorized } from '../core/index.ts'
import type { ProcessEnd, ProcessState } from './pod/pod-object.ts'
import { type Supervision, supervise } from './supervise.ts'

/** A process that ends when the test says so, or by a signal that it heeds. */
class FakeProcess {
  readonly signals: string[] = []
  readonly ended: Promise<ProcessEnd>
  readonly heeds: Set<string>
  end: (end: ProcessEnd) => void = () => {}

  constructor(...heeds: string[]) {
    this.heeds = new Set(heeds)
    this.ended = new Promise((resolve) => {
      this.end = resolve
    })
  }

  signal(signal: NodeJS.Signals): void {
    this.signals.push(signal)
    if (this.heeds.has(signal)) this.end({ exitCode: 143, signal: 15 })
  }
}

/** A Pod in a cluster that may fail; tells the test of every step. */
class FakePod {
  readonly reports: ProcessState[] = []
  attempts = 0
  renewals = 0
  failures = 0
  failure: Error = new Error('no connection')
  onRenewal = () => {}
  onReport = (_state: ProcessState) => {}
  readonly #deleted = new AbortController()

  delete(): void {
    this.#deleted.abort()
  }

  async renew(): Promise<void> {
    this.attempts += 1
    if (this.attempts <= this.failures) throw this.failure
    this.renewals += 1
    this.onRenewal()
  }

  async report(state: ProcessState): Promise<void> {
    this.reports.push(state)
    this.onReport(state)
  }

  async watch(onGone: () => void, signal: AbortSignal): Promise<void> {
    await aborted(AbortSignal.any([this.#deleted.signal, signal]))
    if (this.#deleted.signal.aborted) onGone()
  }
}

function lab(process: FakeProcess, parts: Partial<Supervision> = {}) {
  const pod = new FakePod()
  const drain = new AbortController()
  const kill = new AbortController()
  const supervision: Supervision = {
    pod,
    files: { refresh: async () => true },
    process,
    leaseMs: 40,
    graceMs: 60_000,
    clock: systemClock,
    log: silentLogger,
    drain: drain.signal,
    kill: kill.signal,
    ...parts,
  }
  return { pod, drain, kill, run: () => supervise(supervision) }
}

describe('a process that is looked after', () => {
  test('is told of in the cluster, from its start to its end [ISS-W1]', async () => {
    const process = new FakeProcess()
    const { pod, run } = lab(process)
    pod.onReport = ({ end }) => end ?? process.end({ exitCode: 3 })
    expect(await run()).toEqual({ exitCode: 3, isEvicted: false })
    expect(pod.reports.map(({ isReady, end }) => [isReady, end?.exitCode])).toEqual([
      [true, undefined],
      [false, 3],
    ])
  })

  test('is asked to end, and no more if it does', async () => {
    const process = new FakeProcess('SIGTERM')
    const { drain, run } = lab(process)
    const running = run()
    drain.abort()
    expect(await running).toMatchObject({ exitCode: 143 })
    expect(process.signals).toEqual(['SIGTERM'])
  })

  test('is killed when its time is over', async () => {
    const process = new FakeProcess('SIGKILL')
    const { drain, run } = lab(process, { graceMs: 1 })
    const running = run()
    drain.abort()
    await running
    expect(process.signals).toEqual(['SIGTERM', 'SIGKILL'])
  })

  test('is killed at the second signal', async () => {
    const process = new FakeProcess('SIGKILL')
    const { drain, kill, run } = lab(process)
    const running = run()
    drain.abort()
    kill.abort()
    await running
    expect(process.signals).toEqual(['SIGTERM', 'SIGKILL'])
  })

  test('ends with its Pod, of which nothing is told any more', async () => {
    const process = new FakeProcess('SIGTERM')
    const { pod, run } = lab(process)
    pod.onReport = () => pod.delete()
    expect(await run()).toMatchObject({ isEvicted: true })
    expect(pod.reports).toHaveLength(1)
  })

  test('goes on while the cluster cannot be reached, and its Lease is renewed after [ISS-W1]', async () => {
    const process = new FakeProcess()
    const { pod, run } = lab(process)
    pod.failures = 3
    pod.onRenewal = () => {
      if (pod.renewals === 2) process.end({ exitCode: 0 })
    }
    await run()
    expect([pod.attempts, pod.renewals]).toEqual([5, 2])
  })

  test.each([unauthorized('revoked'), new ApiError('Forbidden', 'no such right')])(
    'ends when its machine is refused for longer than the Lease lasts: %s [ISS-W6]',
    async (failure) => {
      const process = new FakeProcess('SIGTERM')
      // Every attempt takes a quarter of the Lease and a little more.
      const clock = { now: () => 0, monotonic: () => pod.attempts * 11 }
      const { pod, run } = lab(process, { clock })
      Object.assign(pod, { failures: Number.POSITIVE_INFINITY, failure })
      expect(await run()).toMatchObject({ isEvicted: true })
      expect(pod.attempts).toBe(4)
    },
  )

  test('is ready once it answers [ISS-W1]', async () => {
    const process = new FakeProcess()
    const answers = [false, true]
    const { pod, run } = lab(process, { probe: async () => answers.shift() ?? true })
    pod.onReport = ({ isReady }) => {
      if (isReady) process.end({ exitCode: 0 })
    }
    await run()
    expect(pod.reports.map(({ isReady }) => isReady)).toEqual([false, true, false])
  })
})
