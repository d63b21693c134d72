import {
  type FieldProblem,
  invalidEach,
  notSupported,
  required,
} from '../validation/field-problem.ts'
import { qualifiedNameProblems } from '../validation/label-rules.ts'
import { dns1123LabelProblems } from '../validation/names.ts'
import { protocols } from '../validation/port-rules.ts'
import { type Fields, textAt } from './fields.ts'

/** Problems of a label-like name that may be absent. */
export function optionalLabelProblems(parent: Fields, key: string, field: string): FieldProblem[] {
  const value = textAt(parent, key)
  return value ? invalidEach(`${field}.${key}`, value, dns1123LabelProblems(value)) : []
}

/** Problems of the transport protocol of a port. */
export function protocolProblems(port: Fields, field: string): FieldProblem[] {
  const protocol = textAt(port, 'protocol')
  if (!protocol) return [required(`${field}.protocol`)]
  return protocols.includes(protocol)
    ? []
    : [notSupported(`${field}.protocol`, protocol, protocols)]
}

/** Problems of the application protocol of a port. */
export function appProtocolProblems(port: Fields, field: string): FieldProblem[] {
  const name = port['appProtocol']
  if (typeof name !== 'string') return []
  return invalidEach(`${field}.appProtocol`, name, qualifiedNameProblems(name))
}
