import { expect, test } from 'vitest'
import { defaultPullPolicy, imageTag } from './defaults.ts'

const digest = `@sha256:${'0'.repeat(64)}`

test.each([
  ['nginx', 'latest'],
  ['nginx:latest', 'latest'],
  ['nginx:1.2', '1.2'],
  [`nginx${digest}`, ''],
  [`nginx:1.2${digest}`, '1.2'],
  ['registry.example.com:5000/a/b', 'latest'],
  ['registry.example.com:5000/a/b:c', 'c'],
  ['Nginx', ''],
  ['', ''],
  ['nginx:', ''],
  [`${'a/'.repeat(5000)}b`, ''],
])('the tag of %s is %j', (image, tag) => {
  expect(imageTag(image)).toBe(tag)
})

test('only what moves is pulled each time', () => {
  expect(defaultPullPolicy('nginx')).toBe('Always')
  expect(defaultPullPolicy('nginx:1.2')).toBe('IfNotPresent')
})

test('a hostile name is read quickly', () => {
  const began = performance.now()
  imageTag(`${'a-'.repeat(2000)}!`)
  expect(performance.now() - began).toBeLessThan(1_000)
})
