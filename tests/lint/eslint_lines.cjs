// One line a finding, as compilers print them.
module.exports = (results) => results.flatMap((r) => r.messages.map((m) => `${r.filePath}:${m.line}:${m.column}: error: ${m.message} [${m.ruleId}]`)).join('\n');
