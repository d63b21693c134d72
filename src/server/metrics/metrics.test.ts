import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { AuditRecorder } from '../audit/audit-recorder.ts'
import { defaultFairnessLimits, Fairness } from '../fairness/fairness.ts'
import { ConnectionGate } from '../limits.ts'
import { metricsRoute, versionRoute } from '../paths/plain-documents.ts'
import { createPathRoutes } from '../paths/routes.ts'
import { partsWith, type Running, serve } from '../pipeline.suite.ts'
import { MetricsRegistry } from './metrics.ts'
import { RequestMetrics } from './request-metrics.ts'
import { addEventLoopMetrics, addProcessMetrics, addServerMetrics } from './server-metrics.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

describe('the page is in the text form of Prometheus', () => {
  test('a counter', () => {
    const registry = new MetricsRegistry()
    const counter = registry.counter('calls_total', 'Calls.', ['code'])
    counter.with('200').inc()
    counter.with('200').inc(2)
    counter.with('404').inc()
    expect(registry.expose()).toBe(
      '# HELP calls_total Calls.\n# TYPE calls_total counter\n' +
        'calls_total{code="200"} 3\ncalls_total{code="404"} 1\n',
    )
  })

  test('a gauge, with values that are not finite', () => {
    const registry = new MetricsRegistry()
    let level = 0
    registry.observed('gauge', 'level', 'Level.', () => [{ value: level }])
    const shown = [1.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN].map(
      (value) => {
        level = value
        return registry.expose().split('\n')[2]
      },
    )
    expect(shown).toEqual(['level 1.5', 'level +Inf', 'level -Inf', 'level NaN'])
  })

  test('a histogram, whose buckets contain the smaller ones', () => {
    const registry = new MetricsRegistry()
    const histogram = registry.histogram('took_seconds', 'Time.', {
      labels: ['verb'],
      buckets: [0.1, 1],
    })
    for (const value of [0.05, 0.1, 0.5, 3]) histogram.with('GET').observe(value)
    expect(registry.expose()).toBe(
      '# HELP took_seconds Time.\n# TYPE took_seconds histogram\n' +
        'took_seconds_bucket{verb="GET",le="0.1"} 2\n' +
        'took_seconds_bucket{verb="GET",le="1"} 3\n' +
        'took_seconds_bucket{verb="GET",le="+Inf"} 4\n' +
        'took_seconds_sum{verb="GET"} 3.65\n' +
        'took_seconds_count{verb="GET"} 4\n',
    )
  })

  test('label values and help texts cannot break out of their place', () => {
    const registry = new MetricsRegistry()
    registry.counter('odd_total', 'a\\b\nc', ['x']).with('a"b\\c\nd').inc()
    expect(registry.expose()).toBe(
      '# HELP odd_total a\\\\b\\nc\n# TYPE odd_total counter\nodd_total{x="a\\"b\\\\c\\nd"} 1\n',
    )
  })

  test('values that others keep are asked for when the page is shown', () => {
    const registry = new MetricsRegistry()
    let value = 1
    registry.observed('gauge', 'kept', 'Kept.', () => [{ value, labels: { a: 'b' } }])
    value = 2
    expect(registry.expose()).toContain('kept{a="b"} 2\n')
  })
})

test('a name can be used once, and only a proper one', () => {
  const registry = new MetricsRegistry()
  registry.counter('a_total', 'A.')
  expect(() => registry.counter('a_total', 'A.')).toThrow('there already')
  expect(() => registry.counter('a b', 'A.')).toThrow('bad metric name')
})

test('labels without end do not become memory without end', () => {
  const registry = new MetricsRegistry()
  const counter = registry.counter('calls_total', 'Calls.', ['who'])
  for (let i = 0; i < 6_000; i++) counter.with(`user-${i}`).inc()
  const page = registry.expose()
  expect(page.split('\n').length).toBeLessThan(5_010)
  expect(page).toContain('calls_total{who="other"} 1000\n')
})

describe('requests are counted by what they were', () => {
  async function pageAfter(...asked: [string, string][]): Promise<string> {
    const registry = new MetricsRegistry()
    const metrics = new RequestMetrics(registry, {
      clock: systemClock,
      isServed: ({ resource, subresource }) =>
        resource === 'pods' && ['', 'status'].includes(subresource),
    })
    const server = await serve('HTTP/1.1', partsWith({ metrics }))
    running.push(server)
    for (const [method, path] of asked) {
      await server.ask(path, { method, headers: { authorization: 'Bearer ann' } })
    }
    await server.pipeline.drain()
    return registry.expose()
  }

  test.each([
    ['GET', '/api/v1/namespaces/a/pods/b', 'GET', 'v1', 'pods', '', 'resource', 200],
    ['GET', '/api/v1/namespaces/a/pods', 'LIST', 'v1', 'pods', '', 'namespace', 200],
    ['GET', '/api/v1/pods?watch=1', 'WATCH', 'v1', 'pods', '', 'cluster', 200],
    ['POST', '/api/v1/namespaces/a/pods', 'POST', 'v1', 'pods', '', 'resource', 200],
    ['PUT', '/api/v1/namespaces/a/pods/b/status', 'PUT', 'v1', 'pods', 'status', 'resource', 200],
    ['GET', '/api/v1/namespaces/a/made-up/b', 'GET', '', '', '', '', 200],
    ['GET', '/api/v1/namespaces/a/pods/b/made-up', 'GET', '', '', '', '', 200],
    ['GET', '/version', 'GET', '', '', '', '', 200],
    ['PURGE', '/version', 'other', '', '', '', '', 200],
    ['GET', '/a//b', 'other', '', '', '', '', 400],
  ])('%s %s', async (method, path, verb, version, resource, subresource, scope, code) => {
    expect(await pageAfter([method, path])).toContain(
      `apiserver_request_total{verb="${verb}",group="",version="${version}",` +
        `resource="${resource}",subresource="${subresource}",scope="${scope}",code="${code}"} 1\n`,
    )
  })

  test('how long they took is measured, but not of watches', async () => {
    const page = await pageAfter(['GET', '/version'], ['GET', '/api/v1/pods?watch=1'])
    const counts = page.match(/^apiserver_request_duration_seconds_count.*$/gm)
    expect(counts).toEqual([expect.stringMatching(/verb="GET".* 1$/)])
  })
})

test('/metrics shows requests, load, process and event loop; /version the version [GND-R44]', async () => {
  const registry = new MetricsRegistry()
  const auditSink = { write: () => {}, dropped: 3, close: () => Promise.resolve() }
  const audit = new AuditRecorder({ sink: auditSink, clock: systemClock })
  const fairness = new Fairness(defaultFairnessLimits)
  const metrics = new RequestMetrics(registry, { clock: systemClock, isServed: () => true })
  const version = {
    major: '1',
    minor: '36',
    gitVersion: 'v1.36.0',
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '',
    goVersion: '',
    compiler: '',
    platform: 'linux/amd64',
  }
  const paths = createPathRoutes([metricsRoute(registry), versionRoute(version)])
  const server = await serve('HTTP/1.1', partsWith({ metrics, fairness, audit, paths }))
  running.push(server)
  const connections = new ConnectionGate({ total: 1, perAddress: 1 })
  const pipeline = server.pipeline
  addServerMetrics(registry, { fairness, pipeline, audit, auditSink, connections })
  const stopMeasuring = addEventLoopMetrics(registry)
  addProcessMetrics(registry, {
    cpuSeconds: () => 1.5,
    residentBytes: () => 1_000,
    heapBytes: () => 500,
    openFileDescriptors: () => undefined,
    startTimeSeconds: 1_700_000_000,
  })

  const ann = { headers: { authorization: 'Bearer ann' } }
  expect((await server.ask('/version', ann)).status).toEqual(version)
  const page = await server.ask('/metrics', ann)
  stopMeasuring()
  expect(page.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  for (const line of [
    'apiserver_current_inflight_requests{request_kind="readOnly"} 1',
    'apiserver_current_inflight_requests{request_kind="mutating"} 0',
    'apiserver_longrunning_requests 0',
    'apiserver_audit_event_total 1',
    'apiserver_audit_error_total 3',
    'process_cpu_seconds_total 1.5',
    'process_start_time_seconds 1700000000',
    '# TYPE process_open_fds gauge\n# HELP',
    'nodejs_eventloop_lag_seconds{quantile="0.99"}',
  ]) {
    expect(page.text).toContain(line)
  }
})
