const label = /^(?:[a-z\d](?:[-a-z\d.]{0,251}[a-z\d])?\/)?[a-z\d](?:[-\w.]{0,61}[a-z\d])?$/i
const labelValue = /^(?:[a-z\d](?:[-\w.]{0,61}[a-z\d])?)?$/i

/** Reads `key=value,key=value`; `undefined` for anything else. */
export function parseLabels(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = text.split(',').map((pair) => pair.split('='))
  const isGood = pairs.every(
    ([key = '', value, ...more]) =>
      label.test(key) && value !== undefined && labelValue.test(value) && more.length === 0,
  )
  return isGood
    ? Object.fromEntries(pairs.map(([key = '', value = '']) => [key, value]))
    : undefined
}

/** Says what is wrong with labels. Without any, expired Leases of everybody would be taken for those of servers. */
export const checkLabels = (text: string): string | undefined =>
  parseLabels(text) ? undefined : 'must be KEY=VALUE, several of them joined by commas'
