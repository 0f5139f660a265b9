#!/usr/bin/env python3
"""kubernetes_test.py KVD KEYS_SH CONTAINERFILE YAML...: manifests and container, as far as they can be judged without a cluster."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/kvcli"))
from harness import TIMEOUT_S, Skipped, check, check_equal, run_cases  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

KVD, KEYS_SH, CONTAINERFILE, *YAMLS = (os.path.abspath(path) for path in sys.argv[1:])
API_VERSIONS = {
    "Kustomization": "kustomize.config.k8s.io/v1beta1", "StatefulSet": "apps/v1", "Service": "v1", "Secret": "v1",
    "PodDisruptionBudget": "policy/v1", "NetworkPolicy": "networking.k8s.io/v1",
}
KEY = "key app read-write " + "ab" * 32 + "\n"


def documents():
    """By kind; there is one of each."""
    if yaml is None:
        raise Skipped("there is no PyYAML; install the package python3-yaml")
    found = {}
    for path in YAMLS:
        with open(path, encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                check(document["kind"] not in found, path, document["kind"], "twice")
                found[document["kind"]] = document
    return found


def pod():
    return documents()["StatefulSet"]["spec"]["template"]["spec"]


def container(name):
    spec = pod()
    return next(one for one in spec["initContainers"] + spec["containers"] if one["name"] == name)


def flags_of_kvd():
    text = subprocess.run([KVD, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return set(re.findall(r"^  --([a-z_]+)", text, re.MULTILINE))


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) * {"Mi": 1, "Gi": 1024, "m": 1, "g": 1024}[unit]


def kinds():
    """Kubernetes: each manifest has its kind's version and a name, and kustomization.yaml names what is to be applied"""
    found = documents()
    check_equal(sorted(found), sorted(API_VERSIONS))
    for kind, document in found.items():
        check_equal(document["apiVersion"], API_VERSIONS[kind])
        check(kind == "Kustomization" or re.fullmatch(r"[a-z0-9-]+", document["metadata"]["name"]), kind)
    named = found["Kustomization"]["resources"]
    there = [os.path.basename(path) for path in YAMLS]
    check_equal(sorted(named), sorted(set(there) - {"kustomization.yaml", "secret.example.yaml"}))
    check_equal(found["Kustomization"]["configMapGenerator"], [{"name": "kvd-scripts", "files": ["keys.sh"]}])


def selectors():
    """Kubernetes: service, budget and policy select the set's pods, and the set its service"""
    found = documents()
    labels = found["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    for selector in (found["StatefulSet"]["spec"]["selector"]["matchLabels"], found["Service"]["spec"]["selector"],
                     found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                     found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
        check(selector and selector.items() <= labels.items(), selector, labels)
    check_equal(found["StatefulSet"]["spec"]["serviceName"], found["Service"]["metadata"]["name"])
    check_equal(found["Service"]["spec"]["clusterIP"], "None")
    check_equal(found["PodDisruptionBudget"]["spec"]["maxUnavailable"], 1)
    check_equal(found["StatefulSet"]["spec"]["updateStrategy"]["type"], "OnDelete")


def arguments():
    """Kubernetes: kvd has each flag that the pod gives it, and understands the values"""
    given = container("kvd")["args"]
    known = flags_of_kvd()
    for flag in given:
        check(re.fullmatch(r"--[a-z_]+(=.*)?", flag) and flag[2:].split("=")[0] in known, flag)
    with tempfile.TemporaryDirectory() as directory:
        keys = os.path.join(directory, "kvd.keys")
        with open(keys, "w", encoding="ascii", opener=lambda path, how: os.open(path, how, 0o600)) as file:
            file.write(KEY)
        flags = [flag.replace("/keys/kvd.keys", keys) for flag in given]
        done = subprocess.run([KVD, "--shm=" + directory + "/s", *flags, "--check"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S)
        # 2 would say that a flag is not understood; 78 that this machine has no RDMA or no hugepages.
        check(done.returncode in (0, 78), done.returncode, done.stderr)


def memory():
    """Kubernetes: the pod asks for as many hugepages as kvd requires, for RDMA, and for processors of its own"""
    kvd = container("kvd")
    flags = dict(flag[2:].split("=") for flag in kvd["args"] if "=" in flag)
    limits, requests = kvd["resources"]["limits"], kvd["resources"]["requests"]
    check_equal(flags["hugepages"], "require")
    check_equal(mebibytes(limits["hugepages-2Mi"]), mebibytes(flags["memory"]))
    check_equal(requests, limits)
    check(any(name.startswith("rdma/") for name in limits), limits)
    check(limits["cpu"].isdigit(), limits)
    # A pod with hugepages has to ask for memory besides.
    check(mebibytes(limits["memory"]) >= 256, limits)


def probes():
    """Kubernetes: startup, readiness and liveness ask the admin endpoint at its port, and kvd answers them there"""
    kvd = container("kvd")
    ports = {port["name"]: port["containerPort"] for port in kvd["ports"]}
    admin = next(flag for flag in kvd["args"] if flag.startswith("--admin="))
    check_equal(ports["admin"], int(admin.rsplit(":", 1)[1]))
    check_equal(ports["kvd"], int(next(flag for flag in kvd["args"] if flag.startswith("--listen=")).rsplit(":", 1)[1]))
    paths = {kvd[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    check_equal(sorted(paths), ["/livez", "/readyz"])
    check_equal(kvd["readinessProbe"]["httpGet"]["path"], "/readyz")
    check_equal(kvd["livenessProbe"]["httpGet"]["path"], "/livez")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        check_equal(kvd[probe]["httpGet"]["port"], "admin")
    # Time for the memory: half an hour.
    check(kvd["startupProbe"]["periodSeconds"] * kvd["startupProbe"]["failureThreshold"] >= 1800, kvd["startupProbe"])
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen([KVD, "--shm=" + directory + "/s", "--memory=8m", "--admin=*:0", "--insecure"],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            port = None
            for line in process.stderr:
                port = re.search(r"http://\S*?:(\d+)/|$", line)[1] or port
                if " serves " in line:  # until then it is not ready
                    break
            check(port is not None, "kvd named no port")
            for path in paths:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_S) as answer:
                    check_equal(answer.status, 200, path)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=TIMEOUT_S)


def restricted():
    """Kubernetes: not root, no capabilities, nothing to write to but what is mounted, no token"""
    spec = pod()
    check_equal(spec["securityContext"]["runAsNonRoot"], True)
    check(spec["securityContext"]["runAsUser"] > 0 and spec["automountServiceAccountToken"] is False)
    check_equal(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
    for one in spec["initContainers"] + spec["containers"]:
        context = one["securityContext"]
        check_equal((context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"], context["capabilities"]),
                    (False, True, {"drop": ["ALL"]}), one["name"])
        check("limits" in one["resources"], one["name"])


def volumes():
    """Kubernetes: what is mounted is declared, and kvd sees its own copy of the key and not the secret"""
    spec = pod()
    declared = {volume["name"]: volume for volume in spec["volumes"]}
    mounted = {mount["name"] for one in spec["initContainers"] + spec["containers"] for mount in one["volumeMounts"]}
    check_equal(mounted, set(declared))
    check_equal(declared["secret"]["secret"]["secretName"], documents()["Secret"]["metadata"]["name"])
    check_equal(declared["secret"]["secret"]["defaultMode"], 0o400)
    check(documents()["Secret"]["stringData"].keys() == {"kvd.keys"})
    check_equal(declared["keys"]["emptyDir"]["medium"], "Memory")
    check("secret" not in {mount["name"] for mount in container("kvd")["volumeMounts"]})
    check("--keys=/keys/kvd.keys" in container("kvd")["args"])


def policy():
    """Kubernetes: the policy lets clients to kvd's ports and monitoring to the admin endpoint, and nobody else"""
    spec = documents()["NetworkPolicy"]["spec"]
    check_equal(sorted(spec["policyTypes"]), ["Egress", "Ingress"])
    ports = [{(port["port"], port["protocol"]) for port in rule["ports"]} for rule in spec["ingress"]]
    check_equal(ports, [{(7711, "TCP"), (4791, "UDP")}, {(7712, "TCP")}])
    check(all(rule.get("from") for rule in spec["ingress"]) and all(rule.get("to") for rule in spec["egress"]), spec)


class MountedSecret:
    """As the kubelet does it for a pod with fsGroup: links into a directory that is exchanged, mode 0440."""

    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(directory, "kvd.keys")
        self.generation = 0

    def write(self, text):
        self.generation += 1
        name = f"..generation{self.generation}"
        os.makedirs(os.path.join(self.directory, name))
        real = os.path.join(self.directory, name, "kvd.keys")
        with open(real, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(real, 0o440)
        link = os.path.join(self.directory, "..data_tmp")
        os.symlink(name, link)
        os.rename(link, os.path.join(self.directory, "..data"))
        if not os.path.islink(self.path):
            os.symlink("..data/kvd.keys", self.path)


def wait_for(what, condition):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        check(time.monotonic() < end, "waited in vain for", what)
        time.sleep(0.02)


def keys():
    """keys.sh: kvd refuses the secret as it is mounted, takes the copy, and learns of a change"""
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(directory + "/secret")
        secret = MountedSecret(directory + "/secret")
        secret.write(KEY)
        copy = directory + "/kvd.keys"
        environment = {**os.environ, "KVD_SECRET": secret.path, "KVD_KEYS": copy, "KVD_KEYS_INTERVAL": "0.05",
                       "KVD_PROC": directory + "/proc"}
        base = [KVD, "--shm=" + directory + "/s", "--memory=8m"]
        refused = subprocess.run([*base, "--keys=" + secret.path, "--check"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S)
        check_equal(refused.returncode, 78)
        check("mode 0440" in refused.stderr, refused.stderr)
        subprocess.run(["sh", KEYS_SH, "copy"], env=environment, check=True, timeout=TIMEOUT_S)
        check_equal(os.stat(copy).st_mode & 0o7777, 0o600)
        log = open(directory + "/log", "w+", encoding="utf-8")
        kvd = subprocess.Popen([*base, "--keys=" + copy], stdin=subprocess.DEVNULL, stderr=log)
        # What the script takes for /proc: this kvd, and something else that must not be told.
        other = subprocess.Popen(["sleep", "600"])
        for pid, name in ((kvd.pid, "kvd"), (other.pid, "sleep")):
            os.makedirs(f"{directory}/proc/{pid}")
            with open(f"{directory}/proc/{pid}/comm", "w", encoding="ascii") as comm:
                comm.write(name + "\n")
        watch = subprocess.Popen(["sh", KEYS_SH, "watch"], env=environment, stderr=subprocess.DEVNULL)
        try:
            def said(words):
                with open(directory + "/log", encoding="utf-8") as lines:
                    return words in lines.read()
            wait_for("kvd to serve", lambda: said(" serves "))
            secret.write(KEY + KEY.replace("app", "backup").replace("abab", "cdcd", 1))
            wait_for("kvd to read two keys", lambda: said("2 keys"))
            check_equal(os.stat(copy).st_mode & 0o7777, 0o600)
            check_equal(other.poll(), None)
        finally:
            for process in (watch, kvd, other):
                process.terminate()
                process.wait(TIMEOUT_S)
            log.close()
        check_equal(watch.returncode, 0)


def containerfile():
    """Containerfile: two stages, not root, programs and flags that are there"""
    with open(CONTAINERFILE, encoding="utf-8") as file:
        lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", file.read(), flags=re.MULTILINE)).splitlines()
    instructions = [line.split(None, 1) for line in lines if line.strip()]
    known = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "VOLUME", "EXPOSE", "ENV", "HEALTHCHECK", "STOPSIGNAL",
             "ENTRYPOINT", "CMD"}
    check({name for name, _ in instructions} <= known, instructions)
    stages = [index for index, (name, _) in enumerate(instructions) if name == "FROM"]
    check_equal(len(stages), 2)
    last = instructions[stages[1]:]
    check_equal([rest for name, rest in last if name == "USER"], ["kvd"])
    check(any(name == "COPY" and rest.startswith("--from=build ") for name, rest in last), last)
    check(not any("build-deb" in rest or "g++" in rest for _, rest in last), last)
    by_name = dict(last)
    check('CMD ["kvcli", "ping"' in by_name["HEALTHCHECK"], by_name["HEALTHCHECK"])
    check_equal(by_name["STOPSIGNAL"], "SIGTERM")
    check("7711" in by_name["EXPOSE"] and "7712" in by_name["EXPOSE"])
    for name in ("ENTRYPOINT", "CMD"):
        for flag in re.findall(r"--([a-z_]+)", by_name[name]):
            check(flag in flags_of_kvd(), flag)


if __name__ == "__main__":
    run_cases([kinds, selectors, arguments, memory, probes, restricted, volumes, policy, keys, containerfile])
