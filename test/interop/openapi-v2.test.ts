import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { ApiDocuments, kindDefinitions, reviewResources } from '../../src/api/index.ts'
import { findPeer, pathOrReason } from '../support/peers.ts'

const decoder = pathOrReason(findPeer('openapi-v2'))

test.skipIf(!decoder)(
  'gnostic reads in the protobuf form what the JSON says [GND-R65]',
  { timeout: 60_000 },
  () => {
    const documents = new ApiDocuments(
      { kinds: kindDefinitions, reviews: reviewResources },
      { address: '192.0.2.1:6443', version: 'v1.36.3' },
    )
    const bytes = (accept: string): Buffer =>
      documents.answer({ path: '/openapi/v2', query: new URLSearchParams(), accept })!.body
    const decoded = execFileSync(decoder!, {
      input: bytes('application/com.github.proto-openapi.spec.v2@v1.0+protobuf'),
      maxBuffer: 2 ** 26,
    })
    expect(JSON.parse(String(decoded))).toEqual(JSON.parse(String(bytes('application/json'))))
  },
)
