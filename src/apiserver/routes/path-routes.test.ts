import { expect, test } from 'vitest'
import { parseRequestInfo } from '../../core/index.ts'
import { servedTest } from './routes.ts'

const isServed = servedTest(['/v1/serviceaccounts/token'])

test.each([
  ['/api/v1/pods', true],
  ['/api/v1/namespaces/a/pods/b', true],
  ['/api/v1/namespaces/a/pods/b/status', true],
  ['/api/v1/namespaces/a/pods/b/made-up', false],
  ['/api/v1/namespaces/a/configmaps/b/status', false],
  ['/api/v1/namespaces/a/serviceaccounts/b/token', true],
  ['/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', true],
  ['/api/v2/pods', false],
  ['/api/v1/constructor', false],
])('%s is served: %s', (path, expected) => {
  expect(isServed(parseRequestInfo('GET', path))).toBe(expected)
})
