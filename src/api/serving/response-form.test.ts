import { describe, expect, test } from 'vitest'
import { responseForm, streamForm } from './response.ts'

const table = 'as=Table;v=v1;g=meta.k8s.io'

describe('the form of an answer [GND-R59]', () => {
  test.each([
    [undefined, 'object', 'json'],
    ['', 'object', 'json'],
    ['*/*', 'object', 'json'],
    ['application/yaml', 'object', 'yaml'],
    [`application/json;${table}`, 'table', 'json'],
    [`application/yaml;${table}`, 'table', 'yaml'],
    ['application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io', 'metadata', 'json'],
    [`application/json;as=Table;v=v9;g=meta.k8s.io,application/json`, 'object', 'json'],
    ['application/vnd.kubernetes.protobuf,application/json', 'object', 'json'],
    ['application/json;q=0.1,application/yaml', 'object', 'yaml'],
  ])('%s', (accept, view, encoding) => {
    expect(responseForm(accept)).toEqual({ view, encoding })
  })

  test.each(['text/plain', 'application/json;q=0', 'application/json;as=Nonsense;v=v1;g=x'])(
    '%s cannot be had',
    (accept) => {
      expect(() => responseForm(accept)).toThrow(
        'only the following media types are accepted: application/json, application/yaml',
      )
    },
  )
})

describe('the form of the events of a watch [GND-R56]', () => {
  test.each([
    ['application/json;stream=watch', 'object'],
    [`application/json;stream=watch;${table}`, 'table'],
    [undefined, 'object'],
  ])('%s', (accept, view) => {
    expect(streamForm(accept)).toEqual({ view, encoding: 'json' })
  })

  test('YAML cannot be streamed', () => {
    expect(() => streamForm('application/yaml')).toThrow('application/json;stream=watch')
  })
})
