import { Counter, Histogram, headerOf, type Sample, sampleLine } from './metric-kinds.ts'

/** What can be shown on the metrics page. */
interface Metric {
  readonly name: string
  expose(): string
}

/** The content type of the text that `expose` gives. */
export const exposition = 'text/plain; version=0.0.4; charset=utf-8'

/** The metrics of a process, in Prometheus' text form. */
export class MetricsRegistry {
  readonly #metrics = new Map<string, Metric>()

  /** A number that only grows. */
  counter(name: string, help: string, labels: readonly string[] = []): Counter {
    return this.#add(new Counter(name, help, labels))
  }

  /** A distribution; `buckets` are upper bounds in rising order. */
  histogram(
    name: string,
    help: string,
    options: { readonly labels?: readonly string[]; readonly buckets: readonly number[] },
  ): Histogram {
    return this.#add(new Histogram(name, help, options.labels ?? [], options.buckets))
  }

  /** A number that somebody else keeps; it is asked for when the page is shown. */
  observed(
    type: 'counter' | 'gauge',
    name: string,
    help: string,
    collect: () => readonly Sample[],
  ): void {
    const expose = (): string =>
      headerOf(name, help, type) +
      collect()
        .map((sample) => sampleLine(name, sample))
        .join('')
    this.#add({ name, expose })
  }

  /** The whole page. */
  expose(): string {
    let page = ''
    for (const metric of this.#metrics.values()) page += metric.expose()
    return page
  }

  #add<M extends Metric>(metric: M): M {
    if (!/^[a-z_:][\w:]*$/i.test(metric.name)) throw new Error(`bad metric name ${metric.name}`)
    if (this.#metrics.has(metric.name)) throw new Error(`metric ${metric.name} is there already`)
    this.#metrics.set(metric.name, metric)
    return metric
  }
}
