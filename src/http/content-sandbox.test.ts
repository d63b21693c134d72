import { expect, test } from 'vitest'
import { sandboxPolicy, withoutSandbox } from './content-sandbox.ts'

test.each([
  [sandboxPolicy, undefined],
  [`default-src 'self', ${sandboxPolicy}`, "default-src 'self'"],
  [`${sandboxPolicy}, ${sandboxPolicy}`, sandboxPolicy],
  [`${sandboxPolicy}, default-src 'self'`, `${sandboxPolicy}, default-src 'self'`],
  ['sandbox', 'sandbox'],
  ['', ''],
])('%j without what the server added is %j', (value, expected) => {
  expect(withoutSandbox(value)).toBe(expected)
})
