import { expect, test } from 'vitest'
import { parsePortPair } from './guard-options.ts'

test.each([
  ['8080=3000', { listenPort: 8080, host: undefined, port: 3000 }],
  ['0=3000', { listenPort: 0, host: undefined, port: 3000 }],
  ['8080=127.0.0.2:3000', { listenPort: 8080, host: '127.0.0.2', port: 3000 }],
  ['8080=::1:3000', { listenPort: 8080, host: '::1', port: 3000 }],
  ['8080=[::1]:3000', { listenPort: 8080, host: '::1', port: 3000 }],
  ['8080', undefined],
  ['8080=', undefined],
  ['8080=0', undefined],
  ['8080=65536', undefined],
  ['65536=80', undefined],
  ['8080=10.0.0.1:3000', undefined],
  ['8080=localhost:3000', undefined],
  ['8080=[::2]:3000', undefined],
])('--forward %s [ADDON-G1]', (text, pair) => {
  expect(parsePortPair(text)).toEqual(pair)
})
