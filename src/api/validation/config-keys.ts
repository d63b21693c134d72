import { patternProblem, type TextRule } from './names.ts'

const keyPattern = '[-._a-zA-Z0-9]+'
const key = new RegExp(`^${keyPattern}$`)

function parentDirectoryProblems(value: string): string[] {
  if (value === '.' || value === '..') return [`must not be '${value}'`]
  return value.startsWith('..') ? ["must not start with '..'"] : []
}

/** A key of a ConfigMap or a Secret: it must do as a file name. */
export const configKeyProblems: TextRule = (value) => [
  ...(Buffer.byteLength(value) > 253 ? ['must be no more than 253 characters'] : []),
  ...(key.test(value)
    ? []
    : [
        patternProblem(
          "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
          keyPattern,
          'key.name',
          'KEY_NAME',
          'key-name',
        ),
      ]),
  ...parentDirectoryProblems(value),
]
