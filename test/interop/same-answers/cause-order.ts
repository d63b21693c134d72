interface Cause {
  readonly field?: string
  readonly message?: string
}

interface Failure {
  readonly kind: 'Status'
  readonly message?: string
  readonly details: { readonly causes: readonly Cause[] }
}

const isFailure = (value: object): value is Failure =>
  'kind' in value &&
  value.kind === 'Status' &&
  'details' in value &&
  Array.isArray((value.details as Partial<Failure['details']> | undefined)?.causes)

const lineOf = ({ field, message = '' }: Cause): string =>
  field ? `${field}: ${message}` : message

/**
 * A Status with its causes in an order. Kubernetes goes through maps in none, and names some causes
 * several times: that it does stays visible. The message is checked to list the same causes.
 */
export function inOrder(value: object): object {
  if (!isFailure(value) || value.details.causes.length < 2) return value
  const { causes } = value.details
  const once = [...new Map(causes.map((cause) => [lineOf(cause), cause])).values()]
  const list = `[${once.map(lineOf).join(', ')}]`
  const sorted = once.toSorted((a, b) => (lineOf(a) < lineOf(b) ? -1 : 1))
  return {
    ...value,
    message: value.message?.replace(list, '<causes>'),
    details: {
      ...value.details,
      causes: once.length === causes.length ? sorted : [...sorted, '<repeats>'],
    },
  }
}
