import { afterEach, describe, expect, test } from 'vitest'
import { MetricsRegistry, systemClock } from '../core/index.ts'
import { AuditRecorder } from './audit/recorder.ts'
import { Fairness } from './fairness/fairness.ts'
import { defaultFairnessLimits } from './limits.ts'
import {
  addEventLoopMetrics,
  addProcessMetrics,
  addServerMetrics,
  RequestMetrics,
} from './metrics.ts'
import { ConnectionGate } from './pipeline/connection-gate.ts'
import { depsWith, type Running, serve } from './pipeline/pipeline.suite.ts'
import { type PathRoute, PathRoutes } from './routes/route.ts'
import { metricsRoute, versionRoute } from './routes/routes.ts'

const running: Running[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

describe('requests are counted by what they were', () => {
  async function pageAfter(...asked: [string, string][]): Promise<string> {
    const registry = new MetricsRegistry()
    const metrics = new RequestMetrics(registry, systemClock, ['/v1/serviceaccounts/token'])
    const server = await serve('HTTP/1.1', depsWith({ metrics }))
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
    ['PURGE', '/version', 'other', '', '', '', '', 405],
    ['GET', '/a//b', 'other', '', '', '', '', 400],
  ])('%s %s', async (method, path, verb, version, resource, subresource, scope, code) => {
    expect(await pageAfter([method, path])).toContain(
      `apiserver_request_total{verb="${verb}",group="",version="${version}",` +
        `resource="${resource}",subresource="${subresource}",scope="${scope}",code="${code}"} 1\n`,
    )
  })

  test.each([
    ['/api/v1/pods', true],
    ['/api/v1/namespaces/a/pods/b/status', true],
    ['/api/v1/namespaces/a/configmaps/b/status', false],
    ['/api/v1/namespaces/a/serviceaccounts/b/token', true],
    ['/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', true],
    ['/api/v2/pods', false],
    ['/api/v1/constructor', false],
  ])('the labels of %s name its resource, because it is served: %s', async (path, isServed) => {
    const page = await pageAfter(['GET', path])
    expect(page.includes('apiserver_request_total{') && !page.includes(',resource=""')).toBe(
      isServed,
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
  const metrics = new RequestMetrics(registry, systemClock)
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
  const table = new PathRoutes([metricsRoute(registry), versionRoute(version)])
  const paths: PathRoute['handle'] = (...args) => table.handle(...args)
  const server = await serve('HTTP/1.1', depsWith({ metrics, fairness, audit, paths }))
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
