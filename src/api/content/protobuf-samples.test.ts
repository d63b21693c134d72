import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type StructSchema, schemaOf } from '../schema/index.ts'
import { decodeBody } from './decode-body.ts'

/** Written by interop/go/protodump with the real encoders: every kind, all fields filled and none. */
const folder = new URL('../../../test/fixtures/generated/protobuf/', import.meta.url)
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.pb'))
  .map((name) => name.slice(0, -'.pb'.length))

function sample(name: string) {
  const object: { kind: string; apiVersion: string } = JSON.parse(
    readFileSync(new URL(`${name}.json`, folder), 'utf8'),
  )
  const [version = '', group = ''] = object.apiVersion.split('/').reverse()
  return {
    object,
    expected: { group, version, kind: object.kind },
    bytes: readFileSync(new URL(`${name}.pb`, folder)),
  }
}

function visitStruct(value: unknown, struct: StructSchema, seen: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    const field = struct.field(key)
    if (field === undefined) continue
    seen.add(`${struct.name}.${key}`)
    const values: unknown[] = field.list || field.map ? Object.values(inner) : [inner]
    if (field.struct !== undefined)
      for (const element of values) visitStruct(element, field.struct, seen)
  }
}

function wantStruct(struct: StructSchema, wanted: Set<string>): void {
  for (const field of struct.fields()) {
    const name = `${struct.name}.${field.jsonName}`
    if (wanted.has(name)) continue
    wanted.add(name)
    if (field.struct !== undefined) wantStruct(field.struct, wanted)
  }
}

describe('what the Go client encodes [GND-R60]', () => {
  test('every kind is among the samples', () => {
    expect(names.length).toBe(54)
  })

  test('every field of every kind is filled in some sample', () => {
    const seen = new Set<string>()
    const wanted = new Set<string>()
    for (const name of names) {
      const { object, expected } = sample(name)
      const struct = schemaOf(expected)!
      if (!name.endsWith('-empty')) visitStruct(object, struct, seen)
      wantStruct(struct, wanted)
    }
    expect([...wanted].filter((field) => !seen.has(field))).toEqual([])
  })

  test.each(names)('%s in protobuf says the same as in JSON', async (name) => {
    const { object, expected, bytes } = sample(name)
    const decoded = await decodeBody(bytes, 'application/vnd.kubernetes.protobuf', { expected })
    expect(decoded.object).toEqual(object)
  })

  test.each(names)('%s in JSON comes out as it went in', async (name) => {
    const { object, expected } = sample(name)
    const bytes = Buffer.from(JSON.stringify(object))
    const fieldValidation = 'Strict'
    const decoded = await decodeBody(bytes, 'application/json', { expected, fieldValidation })
    expect(decoded.object).toEqual(object)
  })

  test.each(names)('%s cut short anywhere is a 400 or a smaller object', async (name) => {
    const { expected, bytes } = sample(name)
    const step = Math.max(1, Math.floor(bytes.length / 100))
    for (let length = 0; length < bytes.length; length += step) {
      const cut = bytes.subarray(0, length)
      const outcome = await decodeBody(cut, 'application/vnd.kubernetes.protobuf', {
        expected,
      }).then(
        () => 'BadRequest',
        (error: unknown) => (error instanceof Error && 'reason' in error ? error.reason : error),
      )
      expect(outcome).toBe('BadRequest')
    }
  })
})
