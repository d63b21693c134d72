import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sealedPrefix } from '../../storage/index.ts'
import { kindDefinitions } from '../kinds/index.ts'
import { storeKey, storePrefix } from './object-bytes.ts'

const anyText = fc.oneof(
  fc.string(),
  fc.constantFrom('..', '../..', '/', sealedPrefix, `../..${sealedPrefix}signing-keys`, '\0', ''),
)

test.each(kindDefinitions.map(({ kind }) => [kind.kind, kind] as const))(
  'no key or prefix of %s reaches the sealed values, whatever the namespace and name [SEC-R902]',
  (_, kind) => {
    const reaches = (key: string): boolean =>
      key.startsWith(sealedPrefix) || sealedPrefix.startsWith(key)
    const property = fc.property(anyText, anyText, (namespace, name) => {
      expect(reaches(storeKey(kind, { namespace, name }))).toBe(false)
      expect(reaches(storePrefix(kind, { namespace }))).toBe(false)
    })
    expect(reaches(storePrefix(kind, {}))).toBe(false)
    fc.assert(property, { numRuns: 200 })
  },
)
