import { expect, test } from 'vitest'
import { forbidden, unauthorized, wellKnownKinds } from '../../core/index.ts'
import { joinFailure } from './errors.ts'

test.each([
  ['the token abcdef is used up: it was good for one node', 'a new token'],
  ['the token abcdef is for the node "worker-1" only', '--node-name'],
  ['User "system:bootstrap:abcdef" cannot create resource', 'must be in a group'],
])('a refusal with "%s" has the hint that helps', (said, hint) => {
  const error = forbidden(wellKnownKinds.certificateSigningRequest, 'node-csr-1', said)
  const failure = joinFailure(error, 'a certificate', new AbortController().signal)
  expect(failure).toMatchObject({
    reason: 'request-forbidden',
    hint: expect.stringContaining(hint),
  })
})

test('a refused credential may be a token or, in a renewal, a certificate, and both are told', () => {
  const failure = joinFailure(unauthorized(), 'a certificate', new AbortController().signal)
  expect(failure).toMatchObject({
    reason: 'token-refused',
    hint: expect.stringMatching(/token has expired.*certificate is one of a CA that was replaced/),
  })
})
