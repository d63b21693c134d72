import { expect, test } from 'vitest'
import { patchMediaTypes, patchTypeOf } from './index.ts'

test.each(Object.entries(patchMediaTypes))('%s announces a %s patch', (mediaType, type) => {
  expect(patchTypeOf(mediaType)).toBe(type)
  expect(patchTypeOf(`${mediaType.toUpperCase()}; charset=utf-8`)).toBe(type)
})

test.each(['application/apply-patch+yaml', 'application/apply-patch+cbor'])(
  'server-side apply (%s) is a 415 that names the way out [GND-R57]',
  (mediaType) => {
    expect(() => patchTypeOf(mediaType)).toThrow(
      expect.objectContaining({
        reason: 'UnsupportedMediaType',
        message: expect.stringContaining('run `kubectl apply` without --server-side'),
      }),
    )
  },
)

test.each(['application/json', '', undefined])(
  '%j is a 415 that lists what is accepted',
  (type) => {
    expect(() => patchTypeOf(type)).toThrow(
      expect.objectContaining({
        reason: 'UnsupportedMediaType',
        message:
          'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json',
      }),
    )
  },
)
