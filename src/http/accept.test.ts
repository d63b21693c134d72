import { expect, test } from 'vitest'
import { acceptedTypes } from './accept.ts'

const shown = (header: string | undefined) =>
  acceptedTypes(header).map(({ type, subtype, params, quality }) =>
    [
      `${type}/${subtype}`,
      ...Object.entries(params).map(([name, value]) => `${name}=${value}`),
      ...(quality === 1 ? [] : [`q=${quality}`]),
    ].join(';'),
  )

test.each([
  ['no header', undefined, ['*/*']],
  ['an empty header', ' ', ['*/*']],
  [
    'what kubectl get sends',
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
    [
      'application/json;as=Table;v=v1;g=meta.k8s.io',
      'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
      'application/json',
    ],
  ],
  [
    'quality before order',
    'text/html;q=0.5, application/json;q=0.9, application/yaml',
    ['application/yaml', 'application/json;q=0.9', 'text/html;q=0.5'],
  ],
  [
    'a definite type before a range',
    '*/*, application/*, application/json',
    ['application/json', 'application/*', '*/*'],
  ],
  [
    'the name by which kubectl asks for OpenAPI v2',
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    ['application/com.github.proto-openapi.spec.v2@v1.0+protobuf'],
  ],
  ['refused types left out', 'application/json, application/yaml;q=0', ['application/json']],
  ['case folded except in values', 'Application/JSON;AS=Table', ['application/json;as=Table']],
  [
    'a quoted separator',
    'application/json;a="x,y;z\\"", text/plain',
    ['application/json;a=x,y;z"', 'text/plain'],
  ],
  ['a hostile parameter name as plain text', 'a/b;__proto__=c', ['a/b;__proto__=c']],
])('%s', (_name, header, expected) => {
  expect(shown(header)).toEqual(expected)
})

test.each(['json', 'a/b/c', '*/json', 'a b/c', '/', 'a/b;q=2', 'a/b;q=x', 'a/b;q=-1', ',,'])(
  'the unreadable entry %j is left out',
  (entry) => {
    expect(shown(`${entry},text/plain`)).toEqual(['text/plain'])
  },
)
