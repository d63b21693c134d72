import { afterEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import { depsWith, type Running, serve } from '../pipeline/pipeline.suite.ts'
import { type HealthCheck, HealthCheckFailed, healthRoutes, ping, shutdownCheck } from './health.ts'
import { type PathRoute, PathRoutes } from './route.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

const well: HealthCheck = { name: 'store', check: () => Promise.resolve() }
const unwell: HealthCheck = {
  name: 'store',
  check: () => Promise.reject(new HealthCheckFailed('disk is gone')),
}

async function start(readyz: readonly HealthCheck[], checkTimeoutMs = 5_000, said: string[] = []) {
  const say = (_fields: object, message: string) => said.push(message)
  const log = { ...silentLogger, warn: say, info: say }
  const table = new PathRoutes(healthRoutes({ livez: [ping], readyz, log, checkTimeoutMs }))
  const paths: PathRoute['handle'] = (...args) => table.handle(...args)
  const server = await serve('HTTP/1.1', depsWith({ paths }))
  running.push(server)
  return (path: string, method = 'GET') =>
    server.ask(path, { method, headers: { authorization: 'Bearer ann' } })
}

describe('health has the form of Kubernetes [GND-R44]', () => {
  test.each([
    ['/healthz', 'ok'],
    ['/livez', 'ok'],
    ['/readyz', 'ok'],
    ['/livez?verbose', '[+]ping ok\nlivez check passed\n'],
    ['/healthz?verbose', '[+]ping ok\nhealthz check passed\n'],
    ['/readyz?verbose=true', '[+]ping ok\n[+]store ok\nreadyz check passed\n'],
    ['/readyz?verbose&exclude=store', '[+]ping ok\n[+]store excluded: ok\nreadyz check passed\n'],
    [
      '/readyz?verbose&exclude=b&exclude=a&exclude=ping',
      '[+]ping excluded: ok\n[+]store ok\n' +
        'warn: some health checks cannot be excluded: no matches for "a","b"\n' +
        'readyz check passed\n',
    ],
    ['/readyz/store', 'ok'],
    ['/livez/ping', 'ok'],
  ])('%s', async (path, text) => {
    const answer = await (await start([ping, well]))(path)
    expect([answer.code, answer.text]).toEqual([200, text])
    expect(answer.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    })
  })

  test.each([
    ['/readyz', 500, '[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n'],
    ['/readyz?exclude=store', 200, 'ok'],
    ['/readyz/store', 500, 'internal server error: disk is gone\n'],
    ['/livez', 200, 'ok'],
  ])('with a failed check %s is %i', async (path, code, text) => {
    const answer = await (await start([ping, unwell]))(path)
    expect([answer.code, answer.text]).toEqual([code, text])
  })

  test('a check that no one installed is not there', async () => {
    expect((await (await start([ping]))('/readyz/store')).code).toBe(404)
  })
})

test('readyz turns red at drain, livez stays green', async () => {
  const draining = new AbortController()
  const ask = await start([ping, shutdownCheck(draining.signal)])
  expect((await ask('/readyz')).code).toBe(200)
  draining.abort()
  expect((await ask('/readyz')).text).toContain('[-]shutdown failed: reason withheld\n')
  expect((await ask('/readyz/shutdown')).text).toContain('process is shutting down')
  expect((await ask('/livez')).code).toBe(200)
})

test('a check that hangs is unwell, one that breaks keeps its secrets', async () => {
  const hanging = { name: 'hanging', check: () => new Promise<void>(() => {}) }
  const broken = {
    name: 'broken',
    check: () => {
      throw new Error('the password is hunter2')
    },
  }
  const ask = await start([hanging, broken], 5)
  expect((await ask('/readyz')).code).toBe(500)
  expect((await ask('/readyz/hanging')).text).toContain('no result within 5 ms')
  expect((await ask('/readyz/broken')).text).not.toContain('hunter2')
})

test('failure and recovery are logged when they happen, not with every probe', async () => {
  let broken = true
  const check: HealthCheck = {
    name: 'store',
    check() {
      if (broken) throw new HealthCheckFailed('down')
    },
  }
  const said: string[] = []
  const ask = await start([check], 1_000, said)
  await ask('/readyz')
  await ask('/readyz')
  broken = false
  await ask('/readyz')
  await ask('/readyz')
  expect(said).toEqual(['health check failed', 'health check passed again'])
})
