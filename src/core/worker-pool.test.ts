import { afterEach, describe, expect, test } from 'vitest'
import { WorkerPool, type WorkerPoolOptions } from './worker-pool.ts'

/** A worker that echoes; `hang` never answers, `crash` throws. */
const source = `
  import { parentPort } from 'node:worker_threads'
  parentPort.on('message', (job) => {
    if (job === 'crash') throw new Error('crashed on purpose')
    if (job !== 'hang') parentPort.postMessage(job)
  })`

const never = new AbortController().signal
const pools: WorkerPool[] = []
function poolWith(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const pool = new WorkerPool({
    entry: new URL(`data:text/javascript,${encodeURIComponent(source)}`),
    maxWorkers: 1,
    maxJobMs: 60_000,
    idleMs: 60_000,
    maxQueued: 100,
    maxQueuedPerOwner: 10,
    maxHeapMb: 64,
    ...options,
  })
  pools.push(pool)
  return pool
}
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())))

const why = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof Error && 'why' in error ? error.why : error),
  )

describe('jobs run in worker threads [SEC-R503]', () => {
  test('no thread exists before it is needed, and no more than allowed', async () => {
    const pool = poolWith({ maxWorkers: 2 })
    expect(pool.workers).toBe(0)
    const owners = ['a', 'b', 'c', 'd']
    expect(await Promise.all(owners.map((owner) => pool.run(owner, owner, never)))).toEqual(owners)
    expect(pool.workers).toBe(2)
  })

  test('an idle thread is ended', async () => {
    const pool = poolWith({ idleMs: 1 })
    await pool.run('x', 'a', never)
    await expect.poll(() => pool.workers).toBe(0)
    expect(await pool.run('y', 'a', never)).toBe('y')
  })

  test('owners take turns: many jobs of one delay the job of another by one', async () => {
    const pool = poolWith()
    const order: string[] = []
    const run = (owner: string, at: number) =>
      pool.run(at, owner, never).then(() => order.push(`${owner}${at}`))
    await Promise.all([run('a', 1), run('a', 2), run('a', 3), run('b', 1)])
    expect(order).toEqual(['a1', 'a2', 'b1', 'a3'])
  })

  test('an owner has one job running at a time', async () => {
    const pool = poolWith({ maxWorkers: 2, maxJobMs: 3_000 })
    const hanging = why(pool.run('hang', 'a', never))
    const next = why(pool.run('x', 'a', never))
    expect(await pool.run('y', 'b', never)).toBe('y')
    expect([await hanging, await next]).toEqual(['timeout', 'done'])
  })

  test('a job that takes too long fails, and its thread is replaced', async () => {
    const pool = poolWith({ maxJobMs: 3_000 })
    expect(await why(pool.run('hang', 'a', never))).toBe('timeout')
    expect(await pool.run('x', 'a', never)).toBe('x')
  })

  test('a thread that dies fails its own job only', async () => {
    const pool = poolWith()
    const outcomes = [pool.run('crash', 'a', never), pool.run('x', 'b', never)].map(why)
    expect(await Promise.all(outcomes)).toEqual(['crashed', 'done'])
  })

  test.each([
    ['of one owner', { maxQueuedPerOwner: 1 }, 'a'],
    ['of all owners', { maxQueued: 1 }, 'b'],
  ])('a full queue %s refuses at once', async (_name, limits, owner) => {
    const pool = poolWith(limits)
    const first = [pool.run('x', 'a', never), pool.run('x', 'a', never)].map(why)
    expect(await why(pool.run('x', owner, never))).toBe('busy')
    expect(await Promise.all(first)).toEqual(['done', 'done'])
  })

  test('a job whose client has gone is not started', async () => {
    const pool = poolWith()
    const gone = new AbortController()
    const first = pool.run('x', 'a', never)
    const second = why(pool.run('crash', 'a', gone.signal))
    gone.abort()
    expect([await first, await second]).toEqual(['x', 'closed'])
  })

  test('closing ends everything', async () => {
    const pool = poolWith()
    const outcomes = [pool.run('hang', 'a', never), pool.run('x', 'a', never)].map(why)
    await pool.close()
    expect(await Promise.all(outcomes)).toEqual(['closed', 'closed'])
    expect(await why(pool.run('x', 'a', never))).toBe('closed')
    expect(pool.workers).toBe(0)
  })
})
