import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import { parseFieldSelector, type SelectableKind } from './index.ts'

const kindOf = (kind: string, namespaced: boolean) => ({
  group: '',
  version: 'v1',
  kind,
  resource: `${kind.toLowerCase()}s`,
  namespaced,
})
const pods: SelectableKind = {
  kind: kindOf('Pod', true),
  selectableFields: { 'spec.nodeName': ({ metadata }) => metadata.annotations?.['node'] ?? '' },
}
const nodes: SelectableKind = {
  kind: kindOf('Node', false),
  selectableFields: { 'spec.unschedulable': () => 'false' },
}
const configMaps: SelectableKind = { kind: kindOf('ConfigMap', true), selectableFields: {} }

const pod: KubeObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'default', annotations: { node: 'n,1=\\' } },
}

test.each([
  ['', true],
  ['metadata.name=a', true],
  ['metadata.name==a', true],
  ['metadata.name!=a', false],
  ['metadata.namespace=default,metadata.name=a', true],
  ['metadata.namespace=other,metadata.name=a', false],
  ['spec.nodeName=n\\,1\\=\\\\', true],
  ['spec.nodeName!=', true],
  [',,metadata.name=a,', true],
])('the field selector %j answers %j [GND-R54]', (text, answer) => {
  expect(parseFieldSelector(text, pods)(pod)).toBe(answer)
})

test.each([
  ['spec.foo=x', pods, 'field label not supported: spec.foo'],
  ['constructor=x', pods, 'field label not supported: constructor'],
  ['metadata.namespace=x', nodes, 'field label not supported: metadata.namespace'],
  [
    'spec.foo=x',
    configMaps,
    '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
  ],
  ['metadata.name', pods, "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
  ['metadata.name=a=b', pods, 'invalid field selector: unescaped character in value: 61'],
  ['metadata.name=a\\x', pods, 'invalid field selector: invalid escape sequence: \\x'],
  ['metadata.name=a\\', pods, 'invalid field selector: invalid escape sequence: \\'],
])('the field selector %j is a 400 in Kubernetes words', (text, kind, message) => {
  expect(() => parseFieldSelector(text, kind)).toThrow(
    expect.objectContaining({ reason: 'BadRequest', message }),
  )
})

describe('a parsed field selector', () => {
  test('tells the one name and namespace that it can select', () => {
    const closed = parseFieldSelector('metadata.namespace=n,metadata.name=a', pods)
    expect(closed.pinnedName).toBe('a')
    expect(closed.pinnedNamespace).toBe('n')
    expect(closed.isEverything).toBe(false)
    const open = parseFieldSelector('metadata.name!=a', pods)
    expect(open.pinnedName).toBeUndefined()
    expect(open.pinnedNamespace).toBeUndefined()
  })

  test.each([
    ['metadata.name=a', true],
    ['metadata.name=a,metadata.namespace=n', true],
    ['metadata.name=a,metadata.name=b', false],
    ['metadata.name=a,spec.nodeName=n', false],
    ['metadata.name!=a', false],
    ['', false],
  ])('%j is decided by name and namespace alone: %j', (text, answer) => {
    expect(parseFieldSelector(text, pods).isPinned).toBe(answer)
  })

  test('knows that it selects everything', () => {
    expect(parseFieldSelector('', pods).isEverything).toBe(true)
  })
})

test('a selector of very many terms is refused', () => {
  const many = Array.from({ length: 251 }, (_, index) => `metadata.name!=n${index}`).join(',')
  expect(() => parseFieldSelector(many, pods)).toThrow('more than 250 terms')
})
