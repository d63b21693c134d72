import { describe, expect, test } from 'vitest'
import { MetricsRegistry } from './metrics.ts'

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
