/** More label values than this are not a measurement but an attack or a mistake. */
const maxChildren = 5_000

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"')

function showNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

function valueLine(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${showNumber(value)}\n`
}

/** The lines that announce a metric on the page. */
export const headerOf = (name: string, help: string, type: string): string =>
  `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`

/** A value with its labels. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** The line of one value on the page. */
export function sampleLine(name: string, { labels = {}, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  return valueLine(name, pairs.join(','), value)
}

/** A metric with one child per combination of label values. */
abstract class LabelledMetric<Child> {
  readonly name: string
  readonly #header: string
  readonly #labels: readonly string[]
  readonly #children = new Map<
    string,
    { readonly values: readonly string[]; readonly child: Child }
  >()

  constructor(name: string, help: string, labels: readonly string[], type: string) {
    this.name = name
    this.#labels = labels
    this.#header = headerOf(name, help, type)
  }

  protected abstract createChild(): Child
  protected abstract exposeChild(child: Child, labels: string): string

  /** The child for these values, in the order of the labels. Keep it: finding it again costs time. */
  with(...values: readonly string[]): Child {
    if (values.length !== this.#labels.length) throw new Error(`${this.name} has other labels`)
    const known = this.#children.get(values.join('\xff'))
    if (known) return known.child
    const kept = this.#children.size < maxChildren ? values : values.map(() => 'other')
    const key = kept.join('\xff')
    const entry = this.#children.get(key) ?? { values: kept, child: this.createChild() }
    this.#children.set(key, entry)
    return entry.child
  }

  expose(): string {
    let text = this.#header
    for (const { values, child } of this.#children.values()) {
      const pairs = this.#labels.map(
        (label, index) => `${label}="${escapeLabel(values[index] ?? '')}"`,
      )
      text += this.exposeChild(child, pairs.join(','))
    }
    return text
  }
}

class Count {
  value = 0

  inc(by = 1): void {
    this.value += by
  }
}

/** A number that only grows, by labels. */
export class Counter extends LabelledMetric<Count> {
  constructor(name: string, help: string, labels: readonly string[]) {
    super(name, help, labels, 'counter')
  }

  protected override createChild(): Count {
    return new Count()
  }

  protected override exposeChild(child: Count, labels: string): string {
    return valueLine(this.name, labels, child.value)
  }
}

class Distribution {
  readonly #bounds: readonly number[]
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let index = 0
    while (index < bounds.length && value > (bounds[index] ?? 0)) index++
    this.counts[index] = (this.counts[index] ?? 0) + 1
    this.sum += value
  }
}

/** A distribution of observed values, by labels. */
export class Histogram extends LabelledMetric<Distribution> {
  readonly #bounds: readonly number[]

  constructor(name: string, help: string, labels: readonly string[], bounds: readonly number[]) {
    super(name, help, labels, 'histogram')
    this.#bounds = bounds
  }

  protected override createChild(): Distribution {
    return new Distribution(this.#bounds)
  }

  protected override exposeChild(child: Distribution, labels: string): string {
    const before = labels === '' ? '' : `${labels},`
    let text = ''
    let total = 0
    for (const [index, count] of child.counts.entries()) {
      total += count
      const bound = showNumber(this.#bounds[index] ?? Number.POSITIVE_INFINITY)
      text += `${this.name}_bucket{${before}le="${bound}"} ${total}\n`
    }
    text += valueLine(`${this.name}_sum`, labels, child.sum)
    return text + valueLine(`${this.name}_count`, labels, total)
  }
}

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
