// Values that fit a JSON Schema, and values that do not, from a seeded generator of numbers.

export const random = (seed) => {
  let s = seed >>> 0;
  const next = () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), s | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const int = (min, max) => min + Math.floor(next() * (max - min + 1));
  return { next, int, chance: (p) => next() < p, pick: (list) => list[int(0, list.length - 1)] };
};

const ESCAPED = { d: '0123456789', w: 'abcXYZ019_', s: ' ' };

// The characters of a class, which begins after its bracket.
const readClass = (text, from) => {
  let i = from;
  let set = '';
  const negated = text[i] === '^';
  if (negated) i++;
  for (; text[i] !== ']'; i++) {
    if (text[i] === '\\') {
      i++;
      set += ESCAPED[text[i]] ?? text[i];
    } else if (text[i + 1] === '-' && text[i + 2] !== ']') {
      for (let c = text.charCodeAt(i); c <= text.charCodeAt(i + 2); c++) set += String.fromCharCode(c);
      i += 2;
    } else {
      set += text[i];
    }
  }
  return { set: negated ? [...'abcXYZ019 /-'].filter((c) => !set.includes(c)).join('') : set, end: i + 1 };
};

// A text that matches a pattern of letters, classes, groups, | ? * + and {m,n}.
export const fromPattern = (pattern, r) => {
  let at = 0;
  const choice = () => {
    const options = [sequence()];
    while (pattern[at] === '|') {
      at++;
      options.push(sequence());
    }
    return () => r.pick(options)();
  };
  const atom = () => {
    const c = pattern[at++];
    if (c === '(') {
      if (pattern.startsWith('?:', at)) at += 2;
      const inner = choice();
      at++;
      return inner;
    }
    if (c === '[') {
      const { set, end } = readClass(pattern, at);
      at = end;
      return () => r.pick(set);
    }
    if (c === '^' || c === '$') return () => '';
    if (c === '.') return () => r.pick('az09-');
    if (c === '\\') {
      const set = ESCAPED[pattern[at]] ?? pattern[at];
      at++;
      return () => r.pick(set);
    }
    return () => c;
  };
  const counted = (one) => {
    let [min, max] = [1, 1];
    if (pattern[at] === '?') [min, max] = [0, 1];
    else if (pattern[at] === '*') [min, max] = [0, 3];
    else if (pattern[at] === '+') [min, max] = [1, 4];
    else if (pattern[at] === '{') {
      const end = pattern.indexOf('}', at);
      const [low, high] = pattern.slice(at + 1, end).split(',');
      [min, max] = [Number(low), high === undefined ? Number(low) : Math.min(Number(high || 9), Number(low) + 6)];
      at = end;
    } else return one;
    at++;
    return () => Array.from({ length: r.int(min, max) }, one).join('');
  };
  const sequence = () => {
    const parts = [];
    while (at < pattern.length && pattern[at] !== '|' && pattern[at] !== ')') parts.push(counted(atom()));
    return () => parts.map((p) => p()).join('');
  };
  return choice()();
};

const LETTERS = [...'abcxyz019-_ .:/äß漢🙂'];

const text = (schema, r) => {
  const max = schema.maxLength ?? 40;
  if (schema.pattern) {
    for (let i = 0; i < 20; i++) {
      const s = fromPattern(schema.pattern, r);
      if ([...s].length <= max && [...s].length >= (schema.minLength ?? 0)) return s;
    }
    throw new Error(`no text fits ${JSON.stringify(schema)}`);
  }
  const n = r.int(schema.minLength ?? 0, r.chance(0.1) ? Math.min(max, 300) : Math.min(max, 12));
  return Array.from({ length: n }, () => r.pick(LETTERS)).join('');
};

const whole = (schema, r) => {
  const min = schema.minimum ?? 0;
  const max = Math.min(schema.maximum ?? Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return r.pick([min, max, r.int(min, Math.min(max, min + 20))]);
};

export const resolve = (doc, schema) => {
  let s = schema;
  while (s.$ref) s = s.$ref.slice(2).split('/').reduce((o, k) => o[k], doc);
  return s;
};

// Whether a member may have values like this one.
const suits = (doc, of, value) => {
  const schema = resolve(doc, of);
  const type = Array.isArray(value) ? 'array' : typeof value === 'number' ? 'integer' : typeof value;
  return value !== undefined && (schema.anyOf !== undefined || [schema.type].flat().includes(type));
};

// A value that fits. `known` gives values that are there for names of members: most often one of these.
export const fitting = (doc, of, r, known = {}) => {
  const schema = resolve(doc, of);
  if (schema.enum) return r.pick(schema.enum);
  if (schema.anyOf) return fitting(doc, r.pick(schema.anyOf), r, known);
  const type = Array.isArray(schema.type) ? r.pick(schema.type) : schema.type;
  if (type === 'string') return text(schema, r);
  if (type === 'integer') return whole(schema, r);
  if (type === 'number') return r.next();
  if (type === 'boolean') return r.chance(0.5);
  if (type === 'null') return null;
  if (type === 'array') {
    const n = r.int(schema.minItems ?? 0, Math.min(schema.maxItems ?? 3, (schema.minItems ?? 0) + 3));
    return Array.from({ length: n }, () => fitting(doc, schema.items, r, known));
  }
  const value = {};
  for (const [key, one] of Object.entries(schema.properties ?? {})) {
    if (schema.required?.includes(key) || r.chance(0.4)) {
      value[key] = suits(doc, one, known[key]?.[0]) && r.chance(0.8) ? r.pick(known[key]) : fitting(doc, one, r, known);
    }
  }
  if (schema.not?.required) for (const key of schema.not.required.slice(1)) delete value[key];
  if (typeof schema.additionalProperties === 'object' && r.chance(0.5)) {
    const names = known['*'] ?? [];
    const name = schema.propertyNames ? fitting(doc, schema.propertyNames, r) : r.pick([...names, 'nobody']);
    value[name] = fitting(doc, schema.additionalProperties, r, known);
  }
  const keys = Object.keys(schema.properties ?? {});
  while (Object.keys(value).length < (schema.minProperties ?? 0)) {
    const key = r.pick(keys);
    value[key] = fitting(doc, schema.properties[key], r, known);
  }
  return value;
};

// A value that does not fit; undefined: nothing is wrong for this schema.
export const broken = (doc, of, r) => {
  const schema = resolve(doc, of);
  if (schema.anyOf) return { neither: true };
  const types = [schema.type].flat();
  const wrong = [];
  if (!types.includes('string')) wrong.push(() => 'text');
  if (!types.includes('integer') && !types.includes('number')) wrong.push(() => 7);
  if (!types.includes('boolean')) wrong.push(() => true);
  if (!types.includes('array')) wrong.push(() => [1]);
  if (!types.includes('null')) wrong.push(() => null);
  if (schema.enum) wrong.push(() => 'no-such-word', () => '');
  if (schema.minimum !== undefined) wrong.push(() => schema.minimum - 1);
  if (schema.maximum !== undefined) wrong.push(() => schema.maximum + 1);
  if (types.includes('integer')) wrong.push(() => 1.5);
  if (schema.minLength > 0) wrong.push(() => 'x'.repeat(schema.minLength - 1));
  if (schema.maxLength) wrong.push(() => 'x'.repeat(schema.maxLength + 1));
  if (schema.pattern) wrong.push(() => ['%%%', ',', 'ä b'].find((s) => !new RegExp(schema.pattern, 'u').test(s)));
  if (schema.minItems > 0) wrong.push(() => []);
  if (schema.maxItems) wrong.push(() => Array.from({ length: schema.maxItems + 1 }, () => fitting(doc, schema.items, r)));
  if (schema.items) wrong.push(() => [broken(doc, schema.items, r)]);
  if (schema.properties) {
    const whole_ = () => fitting(doc, { ...schema, type: 'object' }, r);
    const keys = Object.keys(schema.properties);
    if (schema.additionalProperties === false) wrong.push(() => ({ ...whole_(), unknown_key: 1 }));
    for (const key of schema.required ?? []) {
      wrong.push(() => Object.fromEntries(Object.entries(whole_()).filter(([k]) => k !== key)));
    }
    if (keys.length > 0) {
      wrong.push(...Array.from({ length: 3 }, () => () => {
        const key = r.pick(keys);
        return { ...whole_(), [key]: broken(doc, schema.properties[key], r) };
      }));
    }
    if (schema.minProperties > 0) wrong.push(() => ({}));
    if (schema.not?.required) wrong.push(() => Object.fromEntries(schema.not.required.map((k) => [k, fitting(doc, schema.properties[k], r)])));
  }
  return r.pick(wrong)();
};
