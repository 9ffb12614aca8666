# usage: fix-imports.py BUILDLOG   (in the root of a clone)
# Corrects the access levels of imports that the compiler names in a build's log; prints how many files changed.
import re, sys, os
out = open(sys.argv[1]).read()
n = 0
for path, msg in sorted(set(re.findall(r'^(/\S+?\.swift):\d+:\d+: (?:error|warning): (.*)$', out, re.M))):
    rel = re.sub(r'^.*?/(?=(Sources|Tests|Benchmarks|Examples)/)', '', path)
    if not os.path.exists(rel): continue
    s = s0 = open(rel).read()
    style = 'internal ' if re.search(r'^internal import', s, re.M) else ''
    k = re.search(r"(?:public|package) import of '(\w+)' was not used", msg)
    if k: s = re.sub(r'^(package|public) import ' + k.group(1) + '$', style + 'import ' + k.group(1), s, flags=re.M)
    for k in re.findall(re.escape(path) + r":\d+:\d+: note: .*imported as 'internal' from '(\w+)' here", out):
        s = re.sub(r'^(internal )?import ' + k + '$', 'package import ' + k, s, flags=re.M)
    if s != s0:
        open(rel, 'w').write(s); n += 1; print('imports:', rel)
print(n, 'files')
