import { type FieldProblem, invalidEach } from './field-problem.ts'
import { rangeProblem, type TextRule } from './names.ts'

/** The transport protocols of ports, sorted as messages list them. */
export const protocols: readonly string[] = ['SCTP', 'TCP', 'UDP']

/** A port number of 1 to 65535. */
export const portNumberProblems = (port: number): string[] =>
  port >= 1 && port <= 65535 ? [] : [rangeProblem(1, 65535)]

/** A port name as IANA has them: letters, digits and single dashes, at most 15. */
export const portNameProblems: TextRule = (name) => {
  const checks: [boolean, string][] = [
    [Buffer.byteLength(name) > 15, 'must be no more than 15 characters'],
    [
      !/^[-a-z0-9]+$/.test(name),
      'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
    ],
    [!/[a-z]/.test(name), 'must contain at least one letter (a-z)'],
    [name.includes('--'), 'must not contain consecutive hyphens'],
    [name.startsWith('-') || name.endsWith('-'), 'must not begin or end with a hyphen'],
  ]
  return checks.filter(([wrong]) => wrong).map(([, words]) => words)
}

/** A port by number or by name. */
export const portOrNameProblems = (port: unknown, field: string): FieldProblem[] =>
  typeof port === 'string'
    ? invalidEach(field, port, portNameProblems(port))
    : invalidEach(field, port ?? 0, portNumberProblems(typeof port === 'number' ? port : 0))
